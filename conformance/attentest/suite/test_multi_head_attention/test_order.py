"""Checks of the chapter `multi_head_attention`: positions, alignment, windows and bias."""

from dataclasses import replace

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_multi_head_attention.cases import (
    COMPONENT,
    MultiHeadCall,
    build_loaded,
    depends_on_values,
    draw_call,
    draw_sizes,
    matches_reference,
    require_other_numbers,
    shows_declared,
)
from attentest.suite.test_rotary.cases import GIVEN, draw_positions, supported_kinds
from attentest.testing.assertions import holds
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding, build_with_parameters
from attentest_spec import CHOICES
from attentest_spec.order import ordered

FURTHEST = 40
"""All positions that are given are below it."""

MASKS = ("none", "padding", "per-sample", "causal")


@check("multi_head_attention.rotary")
def test_rotary(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw))
    length = draw.length(3)
    case = draw_call(draw, probe, kinds=MASKS, lengths=(length, length))
    shows_declared(case, "attention_rotary", CHOICES["attention_rotary"].names)


@check("multi_head_attention.rotary-positions")
def test_rotary_positions(subject: Subject, draw: Draw) -> None:
    # As many sequences as heads: angles that are spread over the wrong axis have the same shape.
    heads = draw.choose((2, 3))
    for batch in (heads, draw.choose((2, 3))):
        matches_reference(_positioned(subject, draw, "per-sample", batch=batch, heads=heads))


def _positioned(
    subject: Subject, draw: Draw, kind: str, *, batch: int, heads: int = 0
) -> MultiHeadCall:
    """Draw a call with positions of one kind that the backend supports."""
    _require_rotary(subject)
    supported_kinds(subject, [kind])
    limit = subject.limits.heads or heads
    sizes = draw_sizes(draw, min(heads, limit)).but(max_length=FURTHEST)
    probe = build_loaded(subject, draw, sizes)
    length = draw.length(2)
    case = draw_call(draw, probe, kinds=MASKS, lengths=(length, length), batch=batch)
    return replace(case, positions=draw_positions(draw, kind, batch, length, FURTHEST))


def _require_rotary(subject: Subject) -> None:
    if subject.choices.attention_rotary == "none":
        raise Absent(f"the attention of {subject.name} has no rotary positions")


@check("multi_head_attention.distance-alone")
def test_distance_alone(subject: Subject, draw: Draw) -> None:
    _require_rotary(subject)
    if subject.choices.rotary_scaling == "dynamic-ntk":
        raise Absent("the frequencies depend on the greatest position")
    kind = draw.choose(supported_kinds(subject, GIVEN))
    sizes = draw_sizes(draw).but(max_length=FURTHEST)
    probe = build_with_parameters(subject, draw, COMPONENT, sizes)
    length, batch = draw.length(3), draw.batch()
    case = draw_call(draw, probe, kinds=MASKS, lengths=(length, length), batch=batch)
    positions = draw_positions(draw, kind, batch, length, FURTHEST // 2)
    near = replace(case, positions=positions)
    far = replace(case, positions=np.asarray(positions) + draw.integer(1, FURTHEST // 2))
    before = near.output()  # the near one first: tables are made again for the far one
    depends_on_values(draw, near, before)
    agree_up_to_rounding(
        probe,
        *far.inputs,
        actual=far.output(),
        expected=before,
        what="output at positions that are all greater by one number",
    )
    _depends_on_positions(far)


def _depends_on_positions(case: MultiHeadCall) -> None:
    """Demand that positions in another order give another output, where the reference does."""
    turned = np.ascontiguousarray(np.roll(np.asarray(case.positions), 1, axis=1))
    moved = case.probe.expected(*replace(case, positions=turned).inputs).output
    here = case.probe.expected(*case.inputs).output
    if np.abs(moved - here).max() < 1e-2 * np.abs(here).max():
        return
    found = replace(case, positions=turned).output()
    holds((found != case.output()).any(), "Other positions give the same output.", actual=found)


@check("multi_head_attention.query-alignment")
def test_query_alignment(subject: Subject, draw: Draw) -> None:
    require_other_numbers(subject)
    if not ordered(subject.choices):
        raise Absent(f"the order does not count in the attention of {subject.name}")
    probe = build_loaded(subject, draw, draw_sizes(draw))
    for queries in (1, draw.integer(2, 3)):
        keys = queries + draw.integer(2, 4)
        case = draw_call(draw, probe, kinds=("none", "padding"), lengths=(queries, keys))
        shows_declared(case, "query_alignment", ("start", "end"))


@check("multi_head_attention.window")
def test_window(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw))
    length = draw.length(min(7, subject.limits.length or 7), 9)
    case = draw_call(draw, probe, kinds=MASKS, lengths=(length, length))
    shows_declared(case, "attention_window", CHOICES["attention_window"].names)


@check("multi_head_attention.attention-sink")
def test_attention_sink(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw, low=2))
    length = draw.length(2, 7)
    case = draw_call(draw, probe, kinds=MASKS, lengths=(length, length))
    matches_reference(case)
    if subject.choices.attention_sink == "none":
        return
    # Above all scores, so that it must not be what the softmax subtracts, and far below them.
    for height in (9.0, -9.0):
        moved = {**probe.parameters, "sink.score": probe.parameters["sink.score"] + height}
        probe.load(moved)
        matches_reference(case, what=f"output with sinks that are changed by {height:g}")


@check("multi_head_attention.relative-bias")
def test_relative_bias(subject: Subject, draw: Draw) -> None:
    most = subject.limits.heads or 12
    heads = [one for one in (3, 6, 8, 12, 5) if one <= most]
    probe = build_loaded(subject, draw, draw_sizes(draw, draw.choose(heads or (most,))))
    length = draw.length(min(6, subject.limits.length or 6), 14)
    case = draw_call(draw, probe, kinds=MASKS, lengths=(length, length))
    free = ("none", "alibi", "alibi-geometric")
    trained = "buckets", "buckets-of-the-past"
    declared = subject.choices.relative_bias
    shows_declared(case, "relative_bias", (*free, *trained) if declared in trained else free)
