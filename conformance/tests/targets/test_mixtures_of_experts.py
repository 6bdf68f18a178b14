"""Mixtures of experts are read as people write them, and judged."""

from pathlib import Path

import pytest
from proof import share
from torch import nn
from wild_mixtures import asked, sound, wrong

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear

DECLARED = {
    "SparseMoeBlock": {"routing_arithmetic": "float32", "routing_weights": "renormalised"},
    "MoE": {"router_bias": "in-scores", "feed_forward_gate": "none"},
    "DeepMoE": {
        "router_scores": "sigmoid",
        "router_bias": "in-choice-alone",
        "routing_scale": 2.5,
        "shared_expert": "added",
    },
    "GatedSharedMoE": {"routing_weights": "as-scored", "shared_expert": "gated"},
}
"""The choices that the numbers of each show."""

MISTAKES = {
    "OverwritingMoE": "last-expert-wins",
    "InputWeightedMoE": "weights-on-the-input",
    "TokenSoftmaxMoE": "softmax-over-positions",
    "OneMoreMoE": "one-expert-more",
    "TransposedMoE": "flattened-the-other-way",
    "SameExpertMoE": "one-expert-for-all",
}
"""The mistake of the catalogue that each is."""

LINES = {
    "TokenSoftmaxMoE": ("scores", "softmax(0)"),
    "TransposedMoE": ("sum", "self.combine("),
    "SameExpertMoE": None,
}
"""The step that a mistake is in, and its line, where that is not the one which adds experts.

None where every line of a call is right, and the constructor is wrong.
"""

OF_TRAINING = {"DetachedMoE": "gradient", "ThresholdMoE": "ties"}
"""Mistakes that the formula does not show, with the clause that detects each."""

QUESTIONS = {
    "CapacityMoE": "capacity_factor limits how many positions",
    "FixedTopMoE": "no argument of its constructor is the number of experts that are chosen",
    "NoisyTopKMoE": "no place for its parameters noise.weight",
    "HalfMoE": "of no option, and of no mistake of the catalogue",
}
"""Mixtures with what is not specified, and what is said of it."""


def judged(kind: type[nn.Module], *names: str) -> dict[str, str]:
    """Return the status of the clauses of those names."""
    slugs = [f"mixture_of_experts.{name}" for name in names]
    report = attentest.check(kind, clauses=slugs)
    return {slug.partition(".")[2]: str(report[slug].status) for slug in slugs}


@pytest.mark.proof
@share(4)
@pytest.mark.parametrize("name", DECLARED)
def test_sound_mixture_conforms_under_the_choices_that_it_shows(name: str) -> None:
    kind = getattr(sound, name)
    found = attentest.adapted(kind).choices
    assert {axis: found[axis] for axis in DECLARED[name]} == DECLARED[name]
    names = ("formula", "shared-expert", "router-bias", "large-scores", "parameters-trained")
    assert set(judged(kind, *names).values()) == {"pass"}


@pytest.mark.proof
@share(6)
@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_of_the_catalogue_is_named(name: str) -> None:
    bench = Bench(attentest.adapted(getattr(wrong, name)))
    verdict = judge(bench, "mixture_of_experts.own-parameters")
    assert verdict.status == "violation"
    assert f"mixture_of_experts.{MISTAKES[name]}" in str(verdict.diagnosis)
    line, place = LINES.get(name, ("sum", "expert(")), verdict.location
    if line is None:
        assert place is None
    else:
        assert place is not None
        assert (place.step, line[1] in place.code) == (line[0], True)


@pytest.mark.parametrize(("name", "clause"), OF_TRAINING.items())
def test_mistake_beside_the_formula_violates_its_clause(name: str, clause: str) -> None:
    assert judged(getattr(wrong, name), "formula", clause) == {
        "formula": "pass",
        clause: "violation",
    }


@pytest.mark.proof
@share(4)
@pytest.mark.parametrize(("name", "text"), QUESTIONS.items())
def test_unspecified_mixture_is_one_question(name: str, text: str) -> None:
    with pytest.raises(Unclear, match=text):
        attentest.adapted(getattr(asked, name))


@pytest.mark.proof
@pytest.mark.parametrize(("added", "read"), [("1e-9", True), ("1e-6", False)])
def test_constant_in_the_divisor_is_asked_about_where_it_shows(
    added: str, *, read: bool, tmp_path: Path
) -> None:
    source = Path(str(sound.__file__)).read_text()
    assert "+ 1e-20)" in source
    (tmp_path / "divided.py").write_text(source.replace("+ 1e-20)", f"+ {added})"))
    target = f"{tmp_path / 'divided.py'}:DeepMoE"
    if read:
        assert attentest.adapted(target).choices["routing_weights"] == "renormalised"
        return
    with pytest.raises(Unclear, match=r"added to the sum|first step that differs is 'sum'"):
        attentest.adapted(target)


def test_other_components_take_no_number_of_experts() -> None:
    """An argument `k` or `top_k` of a network is none of its sizes."""

    class FeedForward(nn.Module):
        def __init__(self, d_model: int, d_ff: int, k: int = 1) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(d_model, k * d_ff), nn.Linear(k * d_ff, d_model)

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.down(self.up(x).relu())

    assert "experts" not in str(attentest.adapted(FeedForward).understood)
