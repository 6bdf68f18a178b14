"""Switches that are off by default and hide later positions: these have to be hidden exactly."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.to_qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if self.causal:
            hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        return self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
AT_CALLS = (
    CODE.replace(", causal=False)", ")")
    .replace("self.heads, self.causal = heads, causal", "self.heads = heads")
    .replace("forward(self, x)", "forward(self, x, is_causal=False)")
    .replace("if self.causal", "if is_causal")
)


FORMULA = "multi_head_attention.formula"
REQUIRED = CODE.replace("causal=False)", "causal: bool)")


@pytest.mark.parametrize(
    ("code", "mistake", "place"),
    [
        (CODE, "triu(2)", 1),
        (CODE, "triu(0)", 1),
        (AT_CALLS, "triu(2)", 1),
        (REQUIRED, "triu(2)", 1),
    ],
)
def test_switch_that_hides_other_positions_is_asked_about(
    tmp_path: Path, code: str, mistake: str, place: int
) -> None:
    with pytest.raises(Unclear, match=f"at position {place}, .* is not that of the text up to"):
        adapted(tmp_path, "SelfAttention", code.replace("triu(1)", mistake))


@pytest.mark.parametrize("code", [CODE, AT_CALLS, REQUIRED])
def test_switch_that_hides_later_positions_is_read(tmp_path: Path, code: str) -> None:
    adapted(tmp_path, "SelfAttention", code)


def test_switch_that_the_user_gives_is_judged(tmp_path: Path) -> None:
    adapted(tmp_path, "SelfAttention", CODE.replace("triu(1)", "triu(2)"), given={"causal": False})


ON = CODE.replace("causal=False)", "causal=True)")
WITH_A_MASK = ON.replace("forward(self, x)", "forward(self, x, mask=None)").replace(
    "        if self.causal:",
    "        if mask is not None:\n"
    '            scores = scores.masked_fill(~mask, float("-inf"))\n'
    "        if self.causal:",
)


@pytest.mark.parametrize("code", [ON, WITH_A_MASK])
def test_switch_that_is_on_and_hides_later_positions_is_read(tmp_path: Path, code: str) -> None:
    adapted(tmp_path, "SelfAttention", code)


@pytest.mark.parametrize("mistake", ["triu(9)", "tril(-9)"])
def test_switch_that_is_on_and_hides_nothing_is_asked_about(tmp_path: Path, mistake: str) -> None:
    code = ON.replace("triu(1)", mistake)
    with pytest.raises(Unclear, match=r"causal=True, its default, .* sees later positions"):
        adapted(tmp_path, "SelfAttention", code)


def test_switch_that_hides_nothing_is_judged_as_the_user_chooses(tmp_path: Path) -> None:
    code = ON.replace("torch.ones", "torch.zeros")
    as_it_is = {"attention_causality": "by-mask"}
    assert not broken(adapted(tmp_path, "SelfAttention", code, choices=as_it_is), FORMULA)
    as_causal = {"attention_causality": "built-in"}
    assert broken(adapted(tmp_path, "SelfAttention", code, choices=as_causal), FORMULA)


NORMED = (
    CODE.replace(
        "self.heads, self.causal", "self.norm = nn.LayerNorm(dim)\n        self.heads, self.causal"
    )
    .replace("def forward(self, x):", "def forward(self, x):\n        whole, x = x, self.norm(x)")
    .replace("return self.to_out((scores", "return whole + self.to_out((scores")
)


def test_switch_of_attention_with_a_norm_and_a_residual_is_read(tmp_path: Path) -> None:
    adapted(tmp_path, "SelfAttention", NORMED)


@pytest.mark.proof
def test_wrong_switch_of_attention_with_a_norm_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "SelfAttention", NORMED.replace("triu(1)", "triu(2)"))
