"""Attention that is given rotary positions by its caller."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

HALVES = """
import torch
from torch import nn


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class LlamaAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, num_kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = num_heads, num_kv_heads, hidden_size // num_heads
        self.q_proj = nn.Linear(hidden_size, num_heads * self.size, bias=False)
        self.k_proj = nn.Linear(hidden_size, num_kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(hidden_size, num_kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(num_heads * self.size, hidden_size, bias=False)

    def forward(self, x, cos, sin, mask=None):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k = k.repeat_interleave(self.heads // self.kv_heads, dim=1)
        v = v.repeat_interleave(self.heads // self.kv_heads, dim=1)
        scores = q @ k.transpose(-1, -2) / self.size**0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        out = scores.softmax(dim=-1) @ v
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))
"""

COMPLEX = """
import torch
from torch import nn


def turned(x, freqs_cis):
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * freqs_cis[None, :, None]).flatten(3)


class Attention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.heads = n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x, freqs_cis, mask):
        batch, length, width = x.shape
        q, k, v = (
            one(x).view(batch, length, self.heads, -1) for one in (self.wq, self.wk, self.wv)
        )
        q, k = turned(q, freqs_cis), turned(k, freqs_cis)
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        scores = q @ k.transpose(2, 3) / (width // self.heads) ** 0.5
        if mask is not None:
            scores = scores + mask
        out = scores.softmax(-1) @ v
        return self.wo(out.transpose(1, 2).reshape(batch, length, width))
"""

SOUND = {"LlamaAttention": HALVES, "Attention": COMPLEX}

WRONG = [
    ("LlamaAttention", "k = k * cos + rotate_half(k) * sin", "pass"),
    ("LlamaAttention", "k = k * cos + rotate_half(k) * sin", "k = k * cos - rotate_half(k) * sin"),
    ("LlamaAttention", "(-second, first)", "(second, first)"),
    ("LlamaAttention", "scores = q @", "v = v * cos + rotate_half(v) * sin\n        scores = q @"),
    ("LlamaAttention", "/ self.size**0.5", ""),
    ("LlamaAttention", "k.repeat_interleave(", "k.flip(1).repeat_interleave("),
    ("LlamaAttention", 'float("-inf")', "0.0"),
    ("Attention", "turned(k, freqs_cis)", "turned(k, freqs_cis.conj())"),
    ("Attention", "turned(k, freqs_cis)", "k"),
    ("Attention", ".softmax(-1)", ".softmax(-2)"),
]


CLAUSES = [
    f"multi_head_attention.{one}"
    for one in ("formula", "masked-keys-ignored", "rotary", "shared-key-heads")
]


@pytest.mark.parametrize(
    ("name", "pairs"), [("LlamaAttention", "halves"), ("Attention", "adjacent")]
)
def test_attention_with_given_rotary_positions_is_judged(
    tmp_path: Path, name: str, pairs: str
) -> None:
    backend = adapted(tmp_path, name, SOUND[name])
    assert backend.choices["attention_rotary"] == "query-and-key"
    assert backend.choices.get("rotary_pairs", "adjacent") == pairs
    assert any("rotary positions 0 to T - 1" in one for one in backend.assumed)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, *CLAUSES) == []


def test_base_of_given_positions_is_not_denied_by_an_argument(tmp_path: Path) -> None:
    """The tables are the adapter's own, and a declared base would not change them."""
    source = COMPLEX.replace("dim, n_heads)", "dim, n_heads, rope_theta=500000.0)")
    backend = adapted(tmp_path, "Attention", source)
    assert not any("rope_theta" in one for one in backend.assumed)


@share(12)
@pytest.mark.parametrize(("name", "right", "wrong"), WRONG)
def test_mistake_in_attention_with_given_rotary_positions_does_not_pass(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, name, SOUND[name], right, wrong, *CLAUSES)


LAYER = (
    HALVES
    + """

class LlamaDecoderLayer(nn.Module):
    def __init__(self, hidden_size, num_heads, num_kv_heads, intermediate_size):
        super().__init__()
        self.self_attn = LlamaAttention(hidden_size, num_heads, num_kv_heads)
        self.up = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down = nn.Linear(intermediate_size, hidden_size, bias=False)
        self.ln_1 = nn.RMSNorm(hidden_size, eps=1e-6)
        self.ln_2 = nn.RMSNorm(hidden_size, eps=1e-6)

    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        cos, sin = position_embeddings
        x = hidden_states + self.self_attn(self.ln_1(hidden_states), cos, sin, attention_mask)
        return x + self.down(torch.relu(self.up(self.ln_2(x))))
"""
)


@pytest.mark.proof
def test_decoder_layer_of_one_sequence_and_positions_is_judged_as_encoder_layer(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "LlamaDecoderLayer", LAYER)
    assert backend.components == ("encoder_layer",)
    assert not broken(backend, "encoder.layer-formula")


def test_decoder_layer_with_a_memory_stays_one(tmp_path: Path) -> None:
    code = LAYER.replace("position_embeddings, att", "encoder_hidden_states, cos, sin, att")
    code = code.replace("        cos, sin = position_embeddings\n", "")
    with pytest.raises(Unclear, match="decoder_layer"):
        adapted(tmp_path, "LlamaDecoderLayer", code)


def test_attention_that_cannot_be_built_is_asked_about(tmp_path: Path) -> None:
    refusing = HALVES.replace(
        "        super().__init__()\n",
        "        super().__init__()\n        assert False, 'no norm'\n",
    ).replace("cos, sin, mask=None", "mask=None, cos=None, sin=None")
    with pytest.raises(Unclear, match="no norm"):
        adapted(tmp_path, "LlamaAttention", refusing)
