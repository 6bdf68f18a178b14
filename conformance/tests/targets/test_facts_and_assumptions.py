"""Facts about code name their source, and what is assumed comes first."""

import torch
from folders import SUPPORT
from mistaken_code import asked
from torch import nn

import attentest

WILD = SUPPORT / "wild"


class Turned(nn.Module):
    """Takes x of shape (seq_len, batch, width), it says; x.shape[1] is the sequence."""

    def __init__(self, d_model, max_len=64):
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, max_len, d_model))

    def forward(self, x):
        return x + self.table[:, : x.size(1)]


def test_every_fact_names_its_source():
    report = attentest.check(str(WILD / "attention.py:attention"), clauses=["attention.formula"])
    read = "\n".join(report.inferred)
    assert "by the signature" in read
    assert "(the first that a call takes)" in read
    assert "--set layout=sequence-first or --set layout=batch-first" in asked(
        Turned, "positional_encoding"
    )


def test_an_assumption_comes_first_and_strict_reports_it():
    target = str(WILD / "parts.py:TokenEmbedding")
    slugs = ["embedding.scale", "embedding.lookup"]
    report = attentest.check(target, clauses=slugs[:1])
    assert report.inferred[1].startswith("assumed embedding_scale=none, as measured: if you meant")
    assert report[slugs[0]].status == "deviation"
    strict = attentest.check(target, clauses=slugs[:1], strict=True)
    assert strict[slugs[0]].status == "violation"
    declared = attentest.check(
        target, clauses=slugs[:1], strict=True, choices={"embedding_scale": "none"}
    )
    assert declared[slugs[0]].status == "deviation"


class TenfoldEpsilon(nn.LayerNorm):
    def __init__(self, d_model: int) -> None:
        super().__init__(d_model, eps=1e-4)


def test_an_unusual_epsilon_of_a_norm_is_an_assumption():
    report = attentest.check(TenfoldEpsilon, "layer_norm", clauses=["layer_norm.formula"])
    assert report.inferred[1].startswith("assumed norm_epsilon=0.0001, as measured: if you meant")
    report = attentest.check(nn.LayerNorm, "layer_norm", clauses=["layer_norm.formula"])
    assert "epsilon=" not in "".join(report.inferred)
