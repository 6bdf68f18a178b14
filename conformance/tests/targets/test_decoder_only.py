"""Parts of decoder-only models are read as people write them, and judged."""

import importlib
import sys
from contextlib import suppress

import pytest
from folders import SUPPORT
from proof import share
from torch import nn

import attentest
from attentest.targets.adapt import Unclear

sys.path.insert(0, str(SUPPORT / "wild_decoder_only"))
rotary_attentions = importlib.import_module("rotary_attentions")

SOUND = {"norms": "rms_norm", "networks": "feed_forward"}
WRONG = {"wrong_norms": "rms_norm", "wrong_networks": "feed_forward"}
OWN_CLAUSE = {
    "TimeRMSNorm": "rms_norm.formula",
    "DetachedRMSNorm": "rms_norm.gradient",
    "CentredRMSNorm": "rms_norm.mean-kept",
    "PositionMLP": "feed_forward.position-wise",
    "DetachedMLP": "feed_forward.gradient",
}
"""Clauses of mistakes that the formula, or a formula at one position, does not show."""
ASKED = {"LinearMLP": "a gated feed-forward network (bilinear)"}
"""Variants that may be meant, and are not judged."""


def classes(module):
    """Return the modules that are written in `module`, without its base classes."""
    own = vars(importlib.import_module(module)).values()
    found = [one for one in own if isinstance(one, type) and issubclass(one, nn.Module)]
    return [
        one for one in found if one.__module__ == module and one.forward is not nn.Module.forward
    ]


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(("module", "component"), SOUND.items())
def test_sound_code_conforms(module, component):
    slugs = [f"{component}.{one}" for one in ("formula", "shapes", "gradient")]
    for one in classes(module):
        report = attentest.check(one, clauses=slugs)
        wrong = [slug for slug in slugs if report[slug].status not in ("pass", "absent")]
        assert not wrong, f"{one.__name__}: {report}"


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(("module", "component"), WRONG.items())
def test_wrong_code_violates(module, component):
    for one in classes(module):
        slug = OWN_CLAUSE.get(one.__name__, f"{component}.formula")
        if one.__name__ in ASKED:
            with pytest.raises(Unclear) as failure:
                attentest.check(one, component, clauses=[slug])
            assert ASKED[one.__name__] in str(failure.value)
            continue
        report = attentest.check(one, component, clauses=[slug])
        assert report[slug].status == "violation", f"{one.__name__}: {report}"


class RoundedFeedForward(nn.Module):
    """A network of minimal Llamas: two thirds of the width, rounded up to a multiple of 256."""

    def __init__(self, dim, hidden_dim):
        super().__init__()
        hidden_dim = 256 * -(-int(2 * hidden_dim / 3) // 256)
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


def test_inner_width_that_is_rounded_is_a_question():
    with pytest.raises(Unclear, match="inner width of 256 where it is built with 11"):
        attentest.adapted(RoundedFeedForward, "feed_forward")


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize("one", classes("rotary_attentions"), ids=lambda one: one.__name__)
def test_attention_with_rotary_positions_conforms(one):
    slugs = [f"multi_head_attention.{name}" for name in ("formula", "rotary", "shapes", "gradient")]
    report = attentest.check(one, clauses=slugs)
    assert report["multi_head_attention.gradient"].status == "pass", str(report)
    good = "pass", "deviation", "absent"
    assert not [slug for slug in slugs if report[slug].status not in good], str(report)
    assert report["multi_head_attention.rotary"].status == "deviation", str(report)


@pytest.mark.proof
@pytest.mark.parametrize("one", classes("wrong_rotary_attentions"), ids=lambda one: one.__name__)
def test_wrong_rotary_positions_are_not_accepted(one):
    """Those that no design has are violations, and others are asked about."""
    with suppress(Unclear):
        assert not attentest.check(one, clauses=["multi_head_attention.formula"]).conforms


SINKS = ("formula", "attention-sink", "every-parameter-reached", "shapes")


@share(2, rest=1)
@pytest.mark.parametrize("one", classes("sinks"), ids=lambda one: one.__name__)
def test_attention_with_sinks_conforms(one):
    assert attentest.adapted(one).choices["attention_sink"] == "per-head"
    slugs = [f"multi_head_attention.{name}" for name in SINKS]
    report = attentest.check(one, clauses=slugs)
    good = "pass", "deviation", "absent"  # it has one input, of which no gradient is taken
    assert not [slug for slug in slugs if report[slug].status not in good], str(report)
    assert report["multi_head_attention.formula"].status == "pass"


SHIFT = "combined - combined.max(dim=-1, keepdim=True).values"
WRONG_SINKS = [
    (SHIFT, "combined - scores.max(dim=-1, keepdim=True).values * (combined != sinks)"),
    ("self.sinks.reshape", "self.sinks.detach().reshape"),
    ("[..., :-1]", "[..., :-1].div(1 - torch.softmax(combined, -1)[..., -1:])"),
]
"""A sink that is not shifted with the scores, that is not trained, and one without an effect."""


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(("old", "new"), WRONG_SINKS)
def test_wrong_sinks_are_asked_about_or_violate(old, new, tmp_path):
    source = (SUPPORT / "wild_decoder_only" / "sinks.py").read_text()
    assert old in source
    (tmp_path / "wrong.py").write_text(source.replace(old, new, 1))
    slugs = [f"multi_head_attention.{name}" for name in (*SINKS, "parameter-count")]
    try:
        report = attentest.check(f"{tmp_path / 'wrong.py'}:SinkAttention", clauses=slugs)
    except Unclear:
        return
    assert any(report[slug].status == "violation" for slug in slugs), str(report)


class GivenTurns(rotary_attentions.BufferedRotaryAttention):
    """Sines and cosines are handed in, as in most published models."""

    def forward(self, x, position_embeddings, mask=None):
        self.angles = lambda length, x: position_embeddings
        return super().forward(x, mask)


def test_attention_that_is_given_sines_and_cosines_is_a_question():
    with pytest.raises(Unclear):
        attentest.check(GivenTurns, clauses=["multi_head_attention.formula"])
