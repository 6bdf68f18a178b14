"""Checks of the chapter `language_model`: what is left of earlier texts, and what a step costs."""

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_cache.cases import matches_where_declared, single_steps
from attentest.suite.test_language_model.cached_cases import (
    COMPONENT,
    build,
    cached_sizes,
    cost_of_last,
    draw_continued,
    drawn,
    matches_reference,
)
from attentest.testing.assertions import holds
from attentest.testing.draw import Draw
from attentest_spec.parameters import head_width, key_heads


@check("language_model.cached-reset", examples=3)
def test_cached_reset(subject: Subject, draw: Draw) -> None:
    # Room for a text that goes on with the last one: a wrong answer is clearer than an error.
    probe = build(subject, draw, cached_sizes(subject, draw))
    rows = 3 if probe.sizes.heads != 3 else 4
    long = draw_continued(draw, probe, [2, 1, 1, 1], rows=rows)
    short = draw_continued(draw, probe, single_steps(3), rows=rows - 1)
    alike = draw_continued(draw, probe, long.chunks, rows=rows)
    for case, what in (
        (long, "output of the first text"),
        (short, "output of a shorter text after a longer one"),
        (alike, "output of a longer text after a shorter one"),
        (long, "output of another text of the same length"),
        (long, "output of the same text again"),
    ):
        matches_reference(case, what)


@check("language_model.cached-new-parameters", examples=2)
def test_cached_new_parameters(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, [2, 1, 1])
    matches_reference(case)
    case.probe.load(draw.parameters(COMPONENT, case.probe.sizes))
    matches_reference(case, "output after other parameters were loaded")


@check("language_model.cached-own-cache", examples=2)
def test_cached_own_cache(subject: Subject, draw: Draw) -> None:
    sizes = cached_sizes(subject, draw)
    one, other = build(subject, draw, sizes), build(subject, draw, sizes)
    case = draw_continued(draw, one, [2, 1, 1])
    for probe in (one, other, one):
        matches_reference(case.but(probe=probe), "output of one of two models")


@check("language_model.cached-sessions", examples=3)
def test_cached_sessions(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, single_steps(6)).but(after=[-1, -1, 0, 1, 2, 3])
    what = "output of two that take turns"
    matches_where_declared(case.probe, case, "cache_sessions", what=what)


@check("language_model.cached-continued-twice", examples=3)
def test_cached_continued_twice(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, [2, 1, 1, 1]).but(after=[-1, 0, 0, 1])
    what = "output after one prefix was continued twice"
    matches_where_declared(case.probe, case, "cache_update", what=what)


@check("language_model.cached-rows-once", examples=1)
def test_cached_rows_once(subject: Subject, draw: Draw) -> None:
    few, many = 2, 8
    if many > (subject.limits.length or many):
        raise Absent(f"{subject.name} is limited to length {subject.limits.length}")
    probe = build(subject, draw, cached_sizes(subject, draw, head_width=8, d_ff=64))
    sizes = probe.sizes
    costs = [
        cost_of_last(draw_continued(draw, probe, [length - 1, 1], rows=2)) for length in (few, many)
    ]
    found = (costs[1] - costs[0]) / (2 * sizes.layers * (many - few))
    width = head_width(sizes, subject.choices)
    projected = 4 * sizes.d_model * width * key_heads(sizes, subject.choices)
    whole = projected + 4 * sizes.d_model * (width * sizes.heads + sizes.d_ff)
    # Keys and values that are projected again, from rows that are kept, are the cheapest of these.
    holds(
        found <= (projected + whole) / 2,
        f"A step costs {found:.0f} operations more for each earlier token, row and block; its key "
        f"and value cost {projected}, and with everything else its row is computed again.",
    )
