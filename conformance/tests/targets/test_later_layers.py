"""Layers of later models: RMS norms, gates and rotary positions, alone and in stacks."""

from pathlib import Path

import pytest
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest_spec import Backend

BLOCK = """\
import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden_dim, bias=False)
        self.up_proj = nn.Linear(dim, hidden_dim, bias=False)
        self.down_proj = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


def rotate(x):
    length, width = x.shape[-2:]
    rates = 10000 ** -(torch.arange(0, width, 2, device=x.device, dtype=x.dtype) / width)
    angles = torch.arange(length, device=x.device, dtype=x.dtype)[:, None] * rates
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class SelfAttention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(dim, dim, bias=False) for _ in range(4)
        )

    def forward(self, x, mask=None):
        q, k, v = (
            one(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for one in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = rotate(q) @ rotate(k).transpose(-2, -1) / k.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class TransformerBlock(nn.Module):
    def __init__(self, dim, n_heads, hidden_dim):
        super().__init__()
        self.attention = SelfAttention(dim, n_heads)
        self.feed_forward = SwiGLU(dim, hidden_dim)
        self.attention_norm = RMSNorm(dim)
        self.ffn_norm = RMSNorm(dim)

    def forward(self, x, mask=None):
        h = x + self.attention(self.attention_norm(x), mask)
        return h + self.feed_forward(self.ffn_norm(h))
"""
STACK = """

class Encoder(nn.Module):
    def __init__(self, dim, n_heads, hidden_dim, n_layers):
        super().__init__()
        self.layers = nn.ModuleList(
            TransformerBlock(dim, n_heads, hidden_dim) for _ in range(n_layers)
        )
        self.norm = RMSNorm(dim)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
"""
POSITIONS = "scores = rotate(q) @ rotate(k)"
NORMS = ("x * torch.rsqrt(", "(x.float() * torch.rsqrt(x.float().square()", "+ 1e-6) * self")
SUM = "h = x + self.attention(self.attention_norm(x), mask)"
END = "return h + self.feed_forward(self.ffn_norm(h))"
ALIBI = """\
slopes = torch.tensor([2 ** (-8 * (h + 1) / self.n_heads) for h in range(self.n_heads)])
        ahead = torch.arange(x.shape[1])
        bias = -slopes.to(x)[:, None, None] * (ahead[:, None] - ahead).abs().to(x)
        scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5 + bias"""
SCORES = "scores = rotate(q) @ rotate(k).transpose(-2, -1) / k.shape[-1] ** 0.5"


def written(folder: Path, *changes: tuple[str, str], text: str = BLOCK) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "block.py").write_text(text)
    return str(folder / "block.py:TransformerBlock")


def status(backend: Backend, clause: str, effort: float = 0.3) -> Status:
    return judge(Bench.for_status(backend, effort=effort), clause).status


def holds(backend: Backend, layer: bool = True) -> bool:
    names = ("layer-formula", "padding-content", "gradient", "every-parameter-reached")
    clauses = names if layer else ("formula", "padding-invariance", "float32")
    found = [status(backend, f"encoder.{one}") for one in clauses]
    return all(one in (Status.PASS, Status.ABSENT) for one in found) and Status.PASS in found


SOUND = {
    "llama": (),
    "post-norm": (
        (SUM, "h = self.attention_norm(x + self.attention(x, mask))"),
        (END, "return self.ffn_norm(h + self.feed_forward(h))"),
    ),
    "no positions": ((SCORES, SCORES.replace("rotate", "")),),
    "alibi": ((SCORES, ALIBI),),
    "gelu": (("F.silu", "F.gelu"),),
    "layer norms": (("= RMSNorm(dim)", "= nn.LayerNorm(dim)"),),
    "own inner width": (
        ("def __init__(self, dim, n_heads, hidden_dim):", "def __init__(self, dim, n_heads):"),
        ("SwiGLU(dim, hidden_dim)", "SwiGLU(dim, 4 * dim)"),
    ),
    "packed gate": (
        ("self.gate_proj = nn.Linear(dim, hidden_dim", "self.both = nn.Linear(dim, 2 * hidden_dim"),
        ("        self.up_proj = nn.Linear(dim, hidden_dim, bias=False)\n", ""),
        (
            "F.silu(self.gate_proj(x)) * self.up_proj(x)",
            "F.silu(self.both(x).chunk(2, -1)[0]) * self.both(x).chunk(2, -1)[1]",
        ),
    ),
    "of torch": (("= RMSNorm(dim)", "= nn.RMSNorm(dim, eps=1e-5)"),),
    "1 + weight": (
        ("torch.ones(dim)", "torch.zeros(dim)"),
        ("* self.weight", "* (1 + self.weight)"),
    ),
    "float32": (
        (
            "return x * torch.rsqrt(x.square()",
            "y = x.float()\n        return (y * torch.rsqrt(y.square()",
        ),
        ("+ 1e-6) * self.weight", "+ 1e-6)).to(x) * self.weight"),
    ),
}


@share(10, rest=1)
@pytest.mark.parametrize("name", SOUND)
def test_sound_layer_is_read_and_conforms(tmp_path, name):
    backend = attentest.adapted(written(tmp_path, *SOUND[name]))
    assert holds(backend)
    options = backend.choices
    assert options["feed_forward_gate"] == "gated"
    assert options["activation"] == {"gelu": "gelu"}.get(name, "silu")
    turned = name not in ("no positions", "alibi")
    assert (options.get("attention_rotary", "none") != "none") == turned
    assert (options["norm_kind"] == "rms") == (name != "layer norms")


@pytest.mark.proof
def test_sound_stack_is_read_and_conforms(tmp_path):
    target = written(tmp_path, text=BLOCK + STACK).replace("TransformerBlock", "Encoder")
    backend = attentest.adapted(target)
    assert holds(backend, layer=False)
    assert backend.choices["final_norm"] == "present"


@share(8, rest=1)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SUM, "h = self.attention(self.attention_norm(x), mask)"),
        (END, "return x + self.feed_forward(self.ffn_norm(h))"),
        (END, "return h + self.feed_forward(h)"),
        (END, "return h + self.feed_forward(self.attention_norm(h))"),
        (".mean(-1, keepdim=True)", ".mean(1, keepdim=True)"),
        (".transpose(1, 2).flatten(2))", ".flatten(1).view(x.shape))"),
        ("self.q_proj, self.k_proj, self.v_proj)\n", "self.q_proj, self.v_proj, self.k_proj)\n"),
    ],
)
def test_mistake_in_a_layer_is_a_violation(tmp_path, old, new):
    backend = attentest.adapted(written(tmp_path, (old, new)))
    assert status(backend, "encoder.layer-formula", effort=1.0) is Status.VIOLATION


def test_reference_of_a_mistaken_layer_has_its_positions(tmp_path):
    target = written(tmp_path, (END, "return x + self.feed_forward(self.ffn_norm(h))"))
    choices = attentest.adapted(target).choices
    assert choices["attention_rotary"] == "query-and-key"
    assert choices["rotary_pairs"] == "halves"
    assert choices["norm_kind"] == "rms"


@share(4, rest=1)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            ((SUM, "h = x"), (END, f"return x + {SUM[8:]} + {END[11:].replace('(h)', '(x)')}")),
            "parallel block",
        ),
        (
            (
                (SUM, "h = x + self.attention_norm(self.attention(x, mask))"),
                (END, "return h + self.ffn_norm(self.feed_forward(h))"),
            ),
            "before it is added",
        ),
        ((("self.ffn_norm = RMSNorm", "self.ffn_norm = nn.LayerNorm"),), "of two kinds"),
        (((END, END.replace("h +", "h + 0.22 *")),), "0.22 times what a sublayer returns"),
        (
            ((SCORES, "scores = 9 * F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT"),),
            "queries are normed before they are compared",
        ),
    ],
    ids=["parallel", "post-branch", "two kinds", "weighed", "cosines"],
)
def test_other_design_is_a_question(tmp_path, changes, said):
    with pytest.raises(Unclear, match=said):
        attentest.adapted(written(tmp_path, *changes))


def test_slopes_are_those_of_three_heads(tmp_path):
    """Two heads have the same slopes in both lists; those of three are rounded to float32 here."""
    target = written(tmp_path, (SCORES, ALIBI)).replace("TransformerBlock", "SelfAttention")
    backend = attentest.adapted(target)
    assert backend.choices["relative_bias"] == "alibi-geometric"
    assert status(backend, "multi_head_attention.formula") is Status.PASS


def test_positions_that_are_none_by_default_are_given(tmp_path):
    target = written(
        tmp_path,
        ("def rotate(x):", "def rotate(x, cos, sin):"),
        ("    length, width = x.shape[-2:]\n", ""),
        (
            "    rates = 10000 ** -(torch.arange(0, width, 2, device=x.device, dtype=x.dtype)"
            " / width)\n",
            "",
        ),
        (
            "    angles = torch.arange(length, device=x.device, dtype=x.dtype)[:, None] * rates\n",
            "",
        ),
        ("    cos, sin = angles.cos(), angles.sin()\n", ""),
        (
            "    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)",
            "    return x * cos[:, None] + torch.cat([-second, first], -1) * sin[:, None]",
        ),
        (
            "def forward(self, x, mask=None):\n        q",
            "def forward(self, x, mask, pair):\n        q",
        ),
        ("rotate(q) @ rotate(k)", "rotate(q, *pair) @ rotate(k, *pair)"),
        (
            "def forward(self, x, mask=None):\n        h",
            "def forward(self, x, mask=None, position_embeddings=None):\n        h",
        ),
        ("self.attention_norm(x), mask)", "self.attention_norm(x), mask, position_embeddings)"),
    )
    backend = attentest.adapted(target)
    assert holds(backend)
    assert backend.choices["attention_rotary"] == "query-and-key"


@pytest.mark.parametrize(("called", "left_out"), [("[:1]", "layers.1"), ("[1:]", "layers.0")])
def test_layer_that_is_not_called_is_a_question_that_names_it(tmp_path, called, left_out):
    text = BLOCK + STACK.replace("class Encoder", "class Bert").replace(
        "n_layers):", "n_layers, vocab_size):"
    ).replace(
        "super().__init__()",
        "super().__init__()\n        self.embed = nn.Embedding(vocab_size, dim)",
    )
    text = text.replace(
        "def forward(self, x, mask=None):\n        for layer in self.layers:",
        "def forward(self, ids):\n        x, mask = self.embed(ids), None\n"
        f"        for layer in self.layers{called}:",
    )
    target = written(tmp_path, text=text).replace("TransformerBlock", "Bert")
    with pytest.raises(Unclear, match=f"does not call {left_out}:"):
        attentest.adapted(target)
