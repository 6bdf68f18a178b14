"""Self-attention of one input with a backward pass written by hand: its gradient is judged."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

CODE = """
import torch
from torch import nn


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = (x - x.amax(-1, keepdim=True)).exp()
        y = y / y.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdim=True))


class SelfAttention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        packed = self.wqkv(x).unflatten(-1, (3, self.heads, -1))
        query, key, value = packed.permute(2, 0, 3, 1, 4)
        scores = query @ key.mT / query.shape[-1] ** 0.5
        return self.wo((Softmax.apply(scores) @ value).transpose(1, 2).flatten(2))
"""
TURNED = (
    CODE.replace(
        "class SelfAttention",
        """
def turned(x):
    one, other = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    steps = torch.arange(one.shape[-1]) / one.shape[-1]
    angles = torch.arange(x.shape[-2])[:, None] / 10000.0**steps
    cos, sin = angles.cos(), angles.sin()
    pairs = torch.stack([one * cos - other * sin, one * sin + other * cos], -1)
    return pairs.flatten(-2).type_as(x)


class SelfAttention""",
    )
    .replace("scores = query @ key.mT", "scores = turned(query) @ turned(key).mT")
    .replace("(Softmax.apply(scores) @", "(scores.softmax(-1) @")
)
"""Attention that turns its heads in float32, as models with rotary positions do."""
CLAUSE = "multi_head_attention.gradient"


def test_a_right_backward_pass_of_self_attention_conforms(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "SelfAttention", CODE), CLAUSE) == []


@pytest.mark.parametrize(
    ("right", "wrong"), [("* y).sum(", "* y).mean("), ("y * (grad - ", "y * (grad + ")]
)
def test_a_wrong_backward_pass_of_self_attention_is_a_violation(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in CODE
    backend = adapted(tmp_path, "SelfAttention", CODE.replace(right, wrong))
    assert broken(backend, CLAUSE)


def test_attention_that_turns_its_heads_in_float32_has_a_right_gradient(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SelfAttention", TURNED)
    assert backend.choices["rotary_arithmetic"] == "float32"
    assert broken(backend, CLAUSE) == []


def test_a_wrong_backward_pass_behind_heads_in_float32_is_a_violation(tmp_path: Path) -> None:
    code = TURNED.replace("turned(key).mT", "turned(key).detach().mT")
    assert broken(adapted(tmp_path, "SelfAttention", code), CLAUSE)
