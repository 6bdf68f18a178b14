"""Gates alone, which are judged in a network, and parallel blocks, which are a question."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

GATE = """
from torch import nn
from torch.nn import functional as F


class GEGLU(nn.Module):
    def forward(self, x):
        x, gate = x.chunk(2, dim=-1)
        return x * F.gelu(gate)
"""

BLOCK = """
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.ln = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x, key_padding_mask=None):
        y = self.ln(x)
        mixed = self.attn(y, y, y, key_padding_mask=key_padding_mask, need_weights=False)[0]
        return x + mixed + self.mlp(y)
"""


NETWORK = ("feed_forward.formula", "feed_forward.every-parameter-reached")


def test_gate_alone_is_judged_between_projections(tmp_path: Path) -> None:
    for right in ("x * F.gelu(gate)", "gate * F.gelu(x)"):
        backend = adapted(tmp_path, "GEGLU", GATE.replace("x * F.gelu(gate)", right))
        assert any("it is the gate of a feed-forward network" in one for one in backend.assumed)
        assert broken(backend, *NETWORK) == []


@pytest.mark.parametrize(
    "wrong", ["x + F.gelu(gate)", "F.gelu(x) * F.gelu(gate)", "x * F.gelu(gate) * 2"]
)
def test_mistakes_in_gates_are_asked_about(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(Unclear, match="could not be called"):
        adapted(tmp_path, "GEGLU", GATE.replace("x * F.gelu(gate)", wrong))


def test_gate_is_a_strict_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"first half times.*GEGLU.*gate of a feed-forward network"):
        adapted(tmp_path, "GEGLU", GATE, strict=True)


@pytest.mark.parametrize("name", ["ParallelBlock", "TransformerBlock"])
def test_parallel_block_is_one_question(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unclear, match="normed by ln: it is a parallel block"):
        adapted(tmp_path, name, BLOCK.replace("class Block", f"class {name}"))


def test_parallel_block_with_two_norms_is_one_by_its_name(tmp_path: Path) -> None:
    code = BLOCK.replace("self.mlp(y)", "self.mlp(self.ln2(x))").replace(
        "self.attn =", "self.ln2 = nn.LayerNorm(dim)\n        self.attn ="
    )
    with pytest.raises(Unclear, match="normed by ln and ln2: it is a parallel block"):
        adapted(tmp_path, "GPTJBlock", code.replace("class Block", "class GPTJBlock"))
    layer = code.replace("class Block", "class EncoderLayer")
    assert broken(adapted(tmp_path, "EncoderLayer", layer), "encoder.layer-formula")


def test_network_without_its_norm_is_no_parallel_block(tmp_path: Path) -> None:
    code = BLOCK.replace("x + mixed + self.mlp(y)", "x + mixed + self.mlp(x + mixed)")
    layer = code.replace("class Block", "class EncoderLayer")
    assert broken(adapted(tmp_path, "EncoderLayer", layer), "encoder.layer-formula")
