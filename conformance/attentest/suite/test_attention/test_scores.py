"""Checks of the chapter `attention`: the scale of the scores, and their cap."""

from attentest.harness.subject import Subject
from attentest.harness.tolerances import fits
from attentest.judging.check import check
from attentest.suite.test_attention.cases import OPEN_FIRST, AttentionCall, draw_call
from attentest.testing.assertions import holds, matches
from attentest.testing.draw import Draw
from attentest_spec.choices import Value


@check("attention.score-scale")
def test_score_scale(subject: Subject, draw: Draw) -> None:
    lengths = draw.length(), draw.length(2)
    case = draw_call(subject, draw, kinds=OPEN_FIRST, scale=1.0, lengths=lengths)
    _shows_declared(case, "score_scale", "inverse-sqrt-e")


@check("attention.score-cap")
def test_score_cap(subject: Subject, draw: Draw) -> None:
    # Some scores are below the cap and some beyond, with a mask and without.
    size = 1.0 if subject.choices.score_cap == "none" else float(subject.choices.score_cap)
    scale = draw.choose((1.0, 2.0, 4.0)) * max(size, 0.1) ** 0.5
    lengths = draw.length(2), draw.length(3)
    case = draw_call(subject, draw, scale=scale, lengths=lengths)
    _shows_declared(case, "score_cap", "none")


def _shows_declared(case: AttentionCall, choice: str, first: Value) -> None:
    """Demand the numbers of the declared option; say so where they are those of the first one."""
    actual, declared = case.output(), case.probe.subject.choices
    other = declared.but(**{choice: first})
    holds(
        declared[choice] == first
        or fits(case.probe, *case.inputs, actual=actual, choices=declared)
        or not fits(case.probe, *case.inputs, actual=actual, choices=other),
        f"{choice} is declared as {declared[choice]}; the numbers show {first}.",
        actual=actual,
    )
    matches(case.probe, *case.inputs, actual=actual)
