"""Sums that are written in parts: the line that writes is named, and not one that reads them."""

from pathlib import Path

from mistaken_code import adapted

from attentest.analysis.lines import cases
from attentest.analysis.lines.locate import locate
from attentest.judging.bench import Bench
from attentest.judging.judge import judge

CODE = """
import torch
from torch import nn
from torch.nn import functional as F


class Expert(nn.Module):
    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


class MixtureOfExperts(nn.Module):
    def __init__(self, d_model: int, d_ff: int, num_experts: int, top_k: int):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.experts = nn.ModuleList(Expert(d_model, d_ff) for _ in range(num_experts))

    def forward(self, x):
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        weights, chosen = self.router(x).softmax(-1).topk(self.top_k, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == number)
            WRITTEN
        return out.view(shape)
"""
ASSIGNED = "out[token] = expert(x[token]) * weights[token, slot, None]"


def test_line_that_writes_is_named(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MixtureOfExperts", CODE.replace("WRITTEN", ASSIGNED))
    subject = Bench(backend).subject()
    case = next(cases.own_cases(subject, "mixture_of_experts"))
    found = locate(subject, case.steps, {})
    assert found is not None
    assert found.code == ASSIGNED
    assert not found.confirmed


ATTENTION = """
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v, self.o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x, mask):
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores -= 10000.0 * (1.0 - mask[:, None, None, :].float())
        weights = scores.softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))
"""


def test_weights_of_large_scores_are_no_mask(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SelfAttention", ATTENTION)
    location = judge(Bench(backend), "multi_head_attention.large-scores").location
    assert location is not None
    assert location.code.startswith("scores -= 10000.0")
