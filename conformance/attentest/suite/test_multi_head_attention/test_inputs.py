"""Checks of the chapter `multi_head_attention`: query, key and value."""

from typing import NamedTuple

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, error_bound
from attentest.judging.check import check
from attentest.suite.test_multi_head_attention.cases import (
    COMPONENT,
    INPUTS,
    OPEN_FIRST,
    PATH,
    SCORED_PATH,
    UNORDERED,
    MultiHeadCall,
    build_loaded,
    depends_on_values,
    draw_call,
    draw_sizes,
    matches_reference,
    require_cross,
    require_other_numbers,
    require_unordered,
    samples_alone_agree,
    with_differing_masks,
)
from attentest.testing.assertions import equal, finite, holds
from attentest.testing.common import dropout_keeps_mean, same_precision
from attentest.testing.draw import Draw
from attentest.testing.dropout_rate import (
    build_path,
    drops_at_the_rate,
    path_input,
    scored_input,
)
from attentest.testing.invariants import (
    agree_up_to_rounding,
    build_with_parameters,
    draw_order,
    has_parameter_map,
)
from attentest.testing.refusal import accepts
from attentest_spec.setting import Array, Floats


@check("multi_head_attention.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    long, longer = draw.length(), draw.length()
    for batch, queries, keys in ((2, long, longer), (1, long, 1), (1, 1, longer), (2, 1, 1)):
        case = draw_call(
            draw, probe, kinds=("none", "padding"), lengths=(queries, keys), batch=batch
        )
        output = case.output()
        same_precision(probe, output)
        finite(output)
        depends_on_values(draw, case, output)


@check("multi_head_attention.cross-lengths")
def test_cross_lengths(subject: Subject, draw: Draw) -> None:
    require_other_numbers(subject)
    probe = build_loaded(subject, draw, draw_sizes(draw))
    for lengths in (draw.lengths(), (draw.long(), draw.length()), (draw.length(), draw.long())):
        matches_reference(draw_call(draw, probe, kinds=UNORDERED, lengths=lengths))


@check("multi_head_attention.every-input-counts")
def test_every_input_counts(subject: Subject, draw: Draw) -> None:
    require_cross(subject)
    probe = build_loaded(subject, draw, draw_sizes(draw))
    case = draw_call(
        draw, probe, kinds=("none", "padding"), lengths=(draw.length(2), draw.length(2))
    )
    before = _Before.of(case)
    moves = draw.floats(*case.query.shape)
    centred = cast(moves - moves.mean(axis=1, keepdims=True), probe.precision)
    _counts(case, before, "query", case.query + centred)
    for number in range(case.key.shape[1]):
        for name, given in (("key", case.key), ("value", case.value)):
            changed = given.copy()
            changed[:, number] += draw.floats(*changed[:, number].shape)
            _counts(case, before, name, changed)


class _Before(NamedTuple):
    """The answers of the backend and of the reference before a change, and their tolerance."""

    output: Array
    expected: Array
    tolerance: float

    @classmethod
    def of(cls, case: MultiHeadCall) -> "_Before":
        expected = case.probe.expected(*case.inputs).output
        return cls(case.output(), expected, error_bound(case.probe, case.inputs, expected))


def _counts(case: MultiHeadCall, before: _Before, name: str, changed: Floats) -> None:
    """Demand that the input `name`, `changed`, changes the output where the oracle's changes."""
    given = cast(changed, case.probe.precision)
    other = case.but(**{name: given})
    expected = case.probe.expected(*other.inputs).output
    wanted = np.abs(expected - before.expected).max(axis=-1)
    found = np.abs(as_floats(other.output()) - as_floats(before.output)).max(axis=-1)
    rounding = error_bound(case.probe, other.inputs, expected) + before.tolerance
    # Half of a change that rounding cannot make is demanded: rounding can hide the rest.
    silent = (wanted > 4 * rounding) & (found < wanted / 2)
    holds(
        not silent.any(),
        f"The {name} changes, and the output changes by {found[silent].max(initial=0):.6g} where "
        f"it should by {wanted[silent].max(initial=0):.6g}.",
    )


@check("multi_head_attention.query-order")
def test_query_order(subject: Subject, draw: Draw) -> None:
    require_unordered(subject)
    several = min(2, subject.limits.heads or 2)
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw, low=several))
    lengths = draw.length(min(3, subject.limits.length or 3)), draw.length(2)
    case = draw_call(draw, probe, kinds=UNORDERED, lengths=lengths)
    order = draw_order(draw, case.query.shape[1])
    mask = case.mask
    if mask is not None and mask.shape[2] > 1:
        mask = mask[:, :, order]
    before = case.output()
    depends_on_values(draw, case, before)
    agree_up_to_rounding(
        probe,
        *case.inputs,
        actual=case.but(query=case.query[:, order], mask=mask).output(),
        expected=before[:, order],
        what="output after reordering the queries",
    )


@check("multi_head_attention.key-order")
def test_key_order(subject: Subject, draw: Draw) -> None:
    require_unordered(subject)
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    for kind in draw.mask_kinds(UNORDERED):
        lengths = (draw.length(2), draw.length(3))
        _unordered(probe, draw, draw_call(draw, probe, kinds=(kind,), lengths=lengths))


def _unordered(probe: Probe, draw: Draw, case: MultiHeadCall) -> None:
    order = draw_order(draw, case.key.shape[1])
    mask = None if case.mask is None else case.mask[..., order]
    before = case.output()
    depends_on_values(draw, case, before)
    moved = case.but(key=case.key[:, order], value=case.value[:, order], mask=mask)
    agree_up_to_rounding(
        probe,
        *case.inputs,
        actual=moved.output(),
        expected=before,
        what="output after reordering the keys",
    )


@check("multi_head_attention.batch-independence")
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    several = min(2, subject.limits.heads or 2)
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw, low=several))
    # Inputs read in another order fit where there is no mask and both lengths are equal.
    length = draw.length(min(3, subject.limits.length or 3))
    free = "none" in subject.limits.masks
    calls = [(("none",) if free else (), (length, length))]
    masks = [one for one in ("padding", "per-sample", "per-head") if one in subject.limits.masks]
    calls += [((kind,), (draw.length(2), length)) for kind in masks]
    for kinds, lengths in calls:
        case = draw_call(draw, probe, kinds=kinds, lengths=lengths, batch=draw.choose((2, 3)))
        if kinds and kinds[0] in masks:
            case = with_differing_masks(draw, case)
        together = case.output()
        depends_on_values(draw, case, together)
        samples_alone_agree(case, together)


@check("multi_head_attention.deterministic")
def test_deterministic(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw).but(dropout=0.5 if subject.limits.dropout else 0.0)
    probe = build_with_parameters(subject, draw, COMPONENT, sizes)
    # With a single visible key the weights are all 1, whatever the keys hold.
    for kinds in ((), ("none",) if "none" in subject.limits.masks else ()):
        _repeats(
            draw, draw_call(draw, probe, kinds=kinds, lengths=(draw.length(2), draw.length(2)))
        )
    if sizes.dropout and "mode" in probe.part.capabilities:
        one = draw_call(draw, probe, kinds=("none",), batch=1, lengths=(2, 3))
        dropout_keeps_mean(probe, *one.inputs)
        if has_parameter_map(probe):
            for path, x in ((PATH, path_input(sizes)), (SCORED_PATH, scored_input(sizes))):
                narrow = build_path(subject, COMPONENT, sizes, path)
                drops_at_the_rate(narrow, path, x, x, x, None)


def _repeats(draw: Draw, case: MultiHeadCall) -> None:
    """Demand the same output of a call again, after another call."""
    first = case.output().copy()
    others = {name: draw.floats(*getattr(case, name).shape) for name in INPUTS}
    depends_on_values(draw, case.but(**others), case.but(**others).output())
    for _ in range(4):  # of few numbers, dropout may drop the same ones twice
        equal(case.output(), first, what="output of the same call after others")


@check("multi_head_attention.strided-inputs")
def test_strided_inputs(subject: Subject, draw: Draw) -> None:
    case, strided = _strided(subject, draw)
    before = case.output()
    depends_on_values(draw, case, before)
    try:
        actual = strided.output()
    except BackendError as refusal:
        raise Absent("inputs that are not contiguous are refused") from refusal
    agree_up_to_rounding(
        case.probe, *case.inputs, actual=actual, expected=before, what="output for strided inputs"
    )


@check("multi_head_attention.strided-inputs-accepted", examples=2)
def test_strided_inputs_accepted(subject: Subject, draw: Draw) -> None:
    case, strided = _strided(subject, draw)
    case.output()
    accepts(subject, "Inputs that are not contiguous in memory", strided.output)


def _strided(subject: Subject, draw: Draw) -> tuple[MultiHeadCall, MultiHeadCall]:
    """Draw a call, and the same one with the axes of its inputs in another order in memory."""
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    lengths = draw.length(2), draw.length(2)
    batch = draw.choose((2, 3))
    case = draw_call(draw, probe, kinds=OPEN_FIRST, lengths=lengths, batch=batch)
    turned = {name: np.ascontiguousarray(getattr(case, name).T).T for name in INPUTS}
    return case, case.but(**turned)
