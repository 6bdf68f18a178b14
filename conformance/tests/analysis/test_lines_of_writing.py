"""Sums that are written in parts: the line that writes is named, and not one that reads them."""

from pathlib import Path

from mistaken_code import adapted

from attentest.analysis.lines import cases
from attentest.analysis.lines.locate import locate
from attentest.judging.bench import Bench

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
