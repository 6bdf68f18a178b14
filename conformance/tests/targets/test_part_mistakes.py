"""Parts of later models with one mistake that no design makes are judged, and other designs not."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear

TURNED = """
import torch
from torch import nn


def turn(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.groups, self.width = heads, kv_heads, width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.width, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)
        speeds = 10000.0 ** -(torch.arange(0, self.width, 2).float() / self.width)
        angles = torch.outer(torch.arange(512).float(), speeds).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q = self.q_proj(x).view(b, t, self.heads, self.width).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.groups, self.width).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.groups, self.width).transpose(1, 2)
        q, k = turn(q, self.cos[:t], self.sin[:t]), turn(k, self.cos[:t], self.sin[:t])
        k = k.repeat_interleave(self.heads // self.groups, dim=1)
        v = v.repeat_interleave(self.heads // self.groups, dim=1)
        scores = q @ k.mT * self.width**-0.5
        later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        y = weights @ v
        return self.o_proj(y.transpose(1, 2).reshape(b, t, c))
"""
BIASED = TURNED.replace(
    "q, k = turn(q, self.cos[:t], self.sin[:t]), turn(k, self.cos[:t], self.sin[:t])",
    "slopes = 2.0 ** -(8.0 * torch.arange(1, self.heads + 1, device=x.device) / self.heads)\n"
    "        places = torch.arange(t, device=x.device)\n"
    "        bias = -slopes[:, None, None] * (places[:, None] - places).abs()",
).replace("self.width**-0.5", "self.width**-0.5 + bias.to(x.dtype)")
NETWORK = """
import torch
from torch import nn


class PlainMLP(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        gate, up = self.gate_proj(x), self.up_proj(x)
        return self.down_proj(torch.nn.functional.gelu(gate) * up)
"""
FORMULA = "multi_head_attention.formula"
TURNS = "turn(q, self.cos[:t], self.sin[:t]), turn(k, self.cos[:t], self.sin[:t])"


@share(3, rest=1)
@pytest.mark.parametrize(
    ("name", "code", "clause"),
    [
        ("CausalSelfAttention", TURNED, FORMULA),
        ("CausalSelfAttention", BIASED, FORMULA),
        ("PlainMLP", NETWORK, "feed_forward.formula"),
    ],
)
def test_part_without_a_mistake_conforms(name, code, clause, tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, name, code), clause)


@share(4, rest=1)
@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        (TURNED, TURNS, "turn(q, self.cos[:t], self.sin[:t]), k"),
        (TURNED, "torch.cat((-b, a)", "torch.cat((b, a)"),
        (TURNED, "softmax(-1)", "softmax(-2)"),
        (TURNED, "y = weights @ v", "y = weights @ k"),
        (TURNED, "y.transpose(1, 2)", "y"),
        (TURNED, ".triu(1)", ".triu(2)"),
        (TURNED, "self.width**-0.5", "c**-0.5"),
        (TURNED, " * self.width**-0.5", ""),
        (BIASED, "-slopes", "slopes"),
        (BIASED, "softmax(-1)", "softmax(-2)"),
    ],
)
def test_ordered_attention_with_one_mistake_is_a_violation(code, old, new, tmp_path: Path) -> None:
    assert code.count(old) == 1
    backend = adapted(tmp_path, "CausalSelfAttention", code.replace(old, new))
    assert backend.choices["attention_causality"] == "built-in"
    assert broken(backend, FORMULA)


@pytest.mark.proof
@pytest.mark.parametrize("sign", ["", "-"])
def test_slopes_beside_a_mask_of_padding_are_judged(sign: str, tmp_path: Path) -> None:
    code = BIASED.replace("-slopes", f"{sign}slopes").replace(
        "def forward(self, x):", "def forward(self, x, attention_mask=None):"
    )
    padding = "later if attention_mask is None else later | ~attention_mask.bool()[:, None, None]"
    code = code.replace("masked_fill(later", f"masked_fill({padding}")
    backend = adapted(tmp_path, "CausalSelfAttention", code)
    assert bool(broken(backend, FORMULA)) == (not sign)


BARE = """
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.qkv(x).chunk(3, dim=-1)
        )
        return self.out(scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
"""


def test_attention_that_hides_nothing_is_not_read_as_turned(tmp_path: Path) -> None:
    """A turn by the number of the head changes no score."""
    backend = adapted(tmp_path, "CausalSelfAttention", BARE)
    assert "attention_rotary" not in backend.choices


@share(3)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("q, k = turn", "v = turn(v, self.cos[:t], self.sin[:t])\n        q, k = turn"),
        ("scores.masked", "(scores / (1 + scores.abs())).masked"),
        pytest.param(
            ".softmax(-1)",
            ".exp()\n        weights = weights / (1 + weights.sum(-1, keepdim=True))",
            marks=pytest.mark.proof,
        ),
        ("q @ k.mT", "nn.functional.normalize(q, dim=-1) @ nn.functional.normalize(k, dim=-1).mT"),
        ("q @ k.mT", "q @ k.mT * torch.log(torch.arange(2, t + 2.0)).view(t, 1).to(x)"),
        ("return x * cos + torch.cat((-b, a)", "return x * cos + torch.cat((b, -a)"),
    ],
)
def test_ordered_attention_of_another_design_is_a_question(old, new, tmp_path: Path) -> None:
    assert TURNED.count(old) == 1
    code = TURNED.replace(old, new).replace("CausalSelf", "SharedHead")
    with pytest.raises(Unclear):
        adapted(tmp_path, "SharedHeadAttention", code)


@pytest.mark.proof
def test_scale_that_is_missing_is_asked_about_where_a_name_only_hints(tmp_path: Path) -> None:
    code = TURNED.replace(" * self.width**-0.5", "").replace("CausalSelf", "SharedHead")
    said = r"scores are not divided by the root .* add --as multi_head_attention.*own\.py:\d+"
    with pytest.raises(Unclear, match=said):
        adapted(tmp_path, "SharedHeadAttention", code)


@pytest.mark.proof
def test_question_about_ordered_attention_names_the_line(tmp_path: Path) -> None:
    code = TURNED.replace("torch.cat((-b, a)", "torch.cat((b, -a)")
    with pytest.raises(Unclear, match=r"first step that differs is .*own\.py:8 "):
        adapted(tmp_path, "CausalSelfAttention", code)


@pytest.mark.parametrize(
    "new",
    [
        "torch.nn.functional.gelu(gate) * torch.nn.functional.gelu(up)",
        "torch.nn.functional.gelu(gate * up)",
        "gate * torch.nn.functional.gelu(up)",
        "torch.nn.functional.gelu(gate) + up",
    ],
)
def test_gated_network_with_one_mistake_is_a_violation(new: str, tmp_path: Path) -> None:
    code = NETWORK.replace("torch.nn.functional.gelu(gate) * up", new)
    assert broken(adapted(tmp_path, "PlainMLP", code), "feed_forward.formula")


@share(4, rest=1)
@pytest.mark.parametrize(
    "new",
    [
        "gate * up",  # bilinear
        "torch.tanh(gate) * torch.sigmoid(up)",  # WaveNet
        "torch.nn.functional.gelu(gate) * (up + 1)",
        "torch.nn.functional.gelu(gate).clamp(max=0.1) * up",
    ],
)
def test_gated_network_of_another_design_is_a_question(new: str, tmp_path: Path) -> None:
    code = NETWORK.replace("torch.nn.functional.gelu(gate) * up", new)
    with pytest.raises(Unclear):
        adapted(tmp_path, "PlainMLP", code)
