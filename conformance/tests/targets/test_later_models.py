"""Whole encoder-decoder models with RMS norms, gates, and positions inside of attention."""

from pathlib import Path

import pytest
from proof import item, share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest_spec import Backend

MODEL = """\
import math

import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def turn(x):
    length, width = x.shape[-2:]
    rates = 10000 ** -(torch.arange(0, width, 2, device=x.device, dtype=x.dtype) / width)
    angles = torch.arange(length, device=x.device, dtype=x.dtype)[:, None] * rates
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, x, memory, mask, ordered):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.q(x), self.k(memory), self.v(memory))
        )
        if ordered:
            q, k = turn(q), turn(k)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~mask, -1e9).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate, self.up = (nn.Linear(dim, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.attention, self.ff = Attention(dim, heads), FeedForward(dim, hidden)
        self.norm1, self.norm2 = Norm(dim), Norm(dim)

    def forward(self, x, mask):
        h = self.norm1(x)
        x = x + self.attention(h, h, mask, True)
        return x + self.ff(self.norm2(x))


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.attention, self.cross = Attention(dim, heads), Attention(dim, heads)
        self.ff = FeedForward(dim, hidden)
        self.norm1, self.norm2, self.norm3 = Norm(dim), Norm(dim), Norm(dim)

    def forward(self, x, memory, target_mask, source_mask):
        h = self.norm1(x)
        x = x + self.attention(h, h, target_mask, True)
        x = x + self.cross(self.norm2(x), memory, source_mask, False)
        return x + self.ff(self.norm3(x))


class Translator(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        self.scale = math.sqrt(d_model)
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        sizes = d_model, n_heads, d_ff
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in range(n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in range(n_layers))
        self.encoder_norm, self.decoder_norm = Norm(d_model), Norm(d_model)
        self.out = nn.Linear(d_model, tgt_vocab, bias=False)

    def forward(self, src, tgt):
        source_mask = (src != self.pad_id)[:, None, None]
        causal = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool, device=tgt.device).tril()
        target_mask = (tgt != self.pad_id)[:, None, None] & causal
        memory = self.src_embed(src) * self.scale
        for layer in self.encoder:
            memory = layer(memory, source_mask)
        memory = self.encoder_norm(memory)
        x = self.tgt_embed(tgt) * self.scale
        for layer in self.decoder:
            x = layer(x, memory, target_mask, source_mask)
        return self.out(self.decoder_norm(x))
"""
TURNS = "q, k = turn(q), turn(k)"
GATED = "F.silu(self.gate(x)) * self.up(x)"
SCORES = "scores = q @ k.mT / math.sqrt(q.shape[-1])"
ALIBI = f"""{SCORES}
        if ordered:
            slopes = torch.tensor([2 ** (-8 * (h + 1) / self.heads) for h in range(self.heads)])
            ahead = torch.arange(x.shape[1])
            scores = scores - (slopes[:, None, None] * (ahead[:, None] - ahead).abs()).to(x)"""
LAYER_NORM = ("class Norm(nn.Module)", "Norm = nn.LayerNorm\n\n\nclass Unused(nn.Module)")
POST_BRANCH = (
    ("x = x + self.attention(h, h, mask, True)", "x = x + self.attention(x, x, mask, True)"),
    ("return x + self.ff(self.norm2(x))", "return x + self.norm2(self.ff(x))"),
    (
        "x = x + self.attention(x, x, mask, True)",
        "x = x + self.norm1(self.attention(x, x, mask, 1))",
    ),
    ("        h = self.norm1(x)\n        x = x + self.norm1(", "        x = x + self.norm1("),
)


def written(folder: Path, *changes: tuple[str, str]) -> str:
    text = MODEL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "translator.py").write_text(text)
    return str(folder / "translator.py:Translator")


def statuses(backend: Backend, *clauses: str) -> set[Status]:
    bench = Bench.for_status(backend, effort=0.3)
    return {judge(bench, f"model.{one}").status for one in clauses}


SOUND = {
    "llama": (),
    "no positions": ((TURNS, "pass"),),
    "alibi": ((TURNS, "pass"), (SCORES, ALIBI)),
    "layer norms": (LAYER_NORM,),
    "sigmoid": (("F.silu(", "torch.sigmoid("),),
    "squared": (
        (
            "self.gate, self.up = (nn.Linear(dim, hidden, bias=False) for _ in range(2))",
            "self.up = nn.Linear(dim, hidden, bias=False)",
        ),
        (GATED, "F.relu(self.up(x)) ** 2"),
    ),
    "added epsilon": (
        (
            "torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)",
            "(1 / (x.square().mean(-1, keepdim=True).sqrt() + 3e-5))",
        ),
    ),
}


@pytest.mark.parametrize(
    "name",
    [item(one, name=one, unit=one == "no positions", rest=8) for one in SOUND],
)
def test_sound_model_is_read_and_conforms(tmp_path, name):
    backend = attentest.adapted(written(tmp_path, *SOUND[name]))
    clauses = ("formula", "source-order-matters", "padding-in-a-batch")
    assert statuses(backend, *clauses) == {Status.PASS}
    options = backend.choices
    turned = name not in ("no positions", "alibi")
    assert (options.get("attention_rotary", "none") != "none") == turned
    assert (options["norm_kind"] == "rms") == (name != "layer norms")
    assert options["norm_placement"] == "pre"


@pytest.mark.proof
@share(6)
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            (("rates = 10000", "rates = 50000"),),
            "encodes inside",
        ),
        (((TURNS, "q, k = turn(F.normalize(q, dim=-1)), turn(F.normalize(k, dim=-1))"),), "inside"),
        ((("memory, source_mask, False", "memory, source_mask, True"),), "inside"),
        (POST_BRANCH, "before it is added"),
        ((("h, h, mask, True", "h, h, mask, False"),), "EncoderLayer has attention_rotary=none"),
        (
            (("return x + self.ff(self.norm2(x))", "return x + 0.5 * self.ff(self.norm2(x))"),),
            "0.5 times",
        ),
    ],
    ids=[
        "another base",
        "normed queries",
        "order of the memory",
        "post-branch",
        "one side",
        "weighed",
    ],
)
def test_other_design_is_a_question(tmp_path, changes, said):
    with pytest.raises(Unclear, match=said):
        attentest.adapted(written(tmp_path, *changes))


MISTAKES = (
    ("return x + self.ff(self.norm3(x))", "return self.ff(self.norm3(x))"),
    (GATED, "self.gate(x) * F.silu(self.up(x))"),
    (".mean(-1, keepdim=True)", ".sum(-1, keepdim=True)"),
    ("return self.out(self.decoder_norm(x))", "return self.out(x)"),
    ("self.norm2(x), memory, source_mask", "self.norm2(x), x, target_mask"),
    (".tril()", ".tril(1)"),
)


@pytest.mark.parametrize(
    ("old", "new"),
    [item(*change, name=change[1], unit=False, rest=8) for change in MISTAKES],
)
def test_mistake_is_a_violation(tmp_path, old, new):
    backend = attentest.adapted(written(tmp_path, (old, new)))
    assert Status.VIOLATION in statuses(backend, "formula", "causality", "padding-in-a-batch")


SHOWN = {
    "attention_rotary": "query-and-key",
    "rotary_pairs": "halves",
    "norm_placement": "pre",
    "norm_kind": "rms",
    "activation": "silu",
    "positional_encoding": "none",
    "embedding_scale": "sqrt-d",
}


@pytest.mark.parametrize(
    ("old", "new", "epsilon"),
    [
        item(
            "return x + self.ff(self.norm3(x))",
            "return self.ff(self.norm3(x))",
            {"rms_epsilon": 1e-6},
            name="one layer",
            unit=False,
        ),
        item(GATED, "self.gate(x) * F.silu(self.up(x))", {}, name="each layer", unit=False),
    ],
)
def test_reference_of_a_mistaken_model_has_its_choices(tmp_path, old, new, epsilon):
    choices = attentest.adapted(written(tmp_path, (old, new))).choices
    shown = SHOWN | epsilon
    assert {name: choices.get(name) for name in shown} == shown
