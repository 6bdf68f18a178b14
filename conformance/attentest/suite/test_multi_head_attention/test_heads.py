"""Checks of the chapter `multi_head_attention`: the projections, and the heads made of them."""

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from attentest.harness.errors import Absent, Shortcoming
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, distance, error_bound, largest
from attentest.judging.check import check
from attentest.suite.test_multi_head_attention.cases import (
    COMPONENT,
    INPUTS,
    OPEN_FIRST,
    UNORDERED,
    MultiHeadCall,
    build_loaded,
    draw_call,
    draw_sizes,
    matches_reference,
)
from attentest.testing.assertions import equal, holds
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding, draw_order, has_parameter_map
from attentest.testing.refusal import explains_refusal, refused_by, refuses
from attentest_spec import Sizes
from attentest_spec.parameters import count, head_width
from attentest_spec.setting import Array, Floats


@check("multi_head_attention.head-width")
def test_head_width(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, low=2)
    probe = subject.part(COMPONENT, sizes)
    born = probe.do("exporting the parameters at birth", lambda part: part.export())
    if "query.weight" not in born:
        raise Absent(f"the {COMPONENT} of {subject.name} has no parameter map")
    found, wanted = len(born["query.weight"]), head_width(sizes, subject.choices) * sizes.heads
    holds(
        found == wanted,
        f"Heads of width {subject.choices.head_width} are declared, and at model width "
        f"{sizes.d_model} with {sizes.heads} heads the query projection has {found} rows, not "
        f"{wanted}.",
    )
    probe.load(draw.parameters(COMPONENT, sizes))
    lengths = draw.length(), draw.length(2)
    matches_reference(draw_call(draw, probe, kinds=OPEN_FIRST, lengths=lengths))


@check("multi_head_attention.projection-bias")
def test_projection_bias(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw, low=min(2, subject.limits.heads or 2)))
    case = draw_call(draw, probe, kinds=OPEN_FIRST, lengths=(draw.length(), draw.length(2)))
    actual = case.output()
    matches_reference(case, actual)
    if subject.choices.projection_bias == "none":
        nothing = case.but(value=np.zeros_like(case.value)).output()
        if not np.isfinite(as_floats(nothing)).all():
            raise Shortcoming(
                "Values of zero give numbers that are not finite, as where scores of 0 are taken "
                "for hidden ones.",
                actual=nothing,
            )
        holds(
            not as_floats(nothing).any(),
            f"No bias is declared, and values of zero give {largest(nothing):.6g}.",
            actual=nothing,
        )
        return
    without = {
        name: np.zeros_like(values) if name.endswith(".bias") else values
        for name, values in probe.parameters.items()
    }
    wrong, room = _answer(case, without)
    right, slack = _answer(case, probe.parameters)
    telling = distance(wrong, right) > room + slack  # half precision may be too coarse to tell
    holds(
        distance(actual, wrong) > room or not telling,
        "Biases are declared, and the numbers are those of projections without them.",
        actual=actual,
    )


def _answer(case: MultiHeadCall, parameters: Mapping[str, Floats]) -> tuple[Floats, float]:
    """Return the answer of the reference to `parameters`, and the tolerance of correct code."""
    kept = case.probe.parameters
    case.probe.parameters = dict(parameters)
    try:
        answer: Floats = case.probe.expected(*case.inputs).output
        return answer, error_bound(case.probe, case.inputs, answer)
    finally:
        case.probe.parameters = kept


@check("multi_head_attention.own-projections")
def test_own_projections(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw))
    case = draw_call(draw, probe, kinds=UNORDERED, lengths=(draw.length(2), draw.length(3)))
    first = probe.parameters
    for name in INPUTS:
        weight = f"{name}.weight"
        fresh = draw.floats(*first[weight].shape, scale=probe.sizes.d_model**-0.5)
        probe.load({**first, weight: fresh})
        matches_reference(case, what=f"output with another {weight}")


@check("multi_head_attention.heads-are-slices")
def test_heads_are_slices(subject: Subject, draw: Draw) -> None:
    if subject.choices.relative_bias != "none":
        raise Absent("each head has a bias of its own: their order counts")
    if subject.limits.one_key_head:
        raise Absent(f"{subject.name} has one head of keys and values")
    probe = build_loaded(subject, draw, draw_sizes(draw, low=2).but(kv_heads=0))
    case = draw_call(draw, probe, kinds=UNORDERED, lengths=(draw.length(2), draw.length(2)))
    before, kept = case.output(), probe.parameters
    order = draw_order(draw, probe.sizes.heads)
    whole = subject.choices.query_key_norm == "whole-projection"
    probe.load(
        {
            name: _dealt(name, values, order) if whole or "_norm." not in name else values
            for name, values in kept.items()
        }
    )
    agree_up_to_rounding(
        probe,
        *case.inputs,
        actual=case.output(),
        expected=before,
        what="output after reordering the heads in all four projections",
    )
    query = {name: values for name, values in kept.items() if name.startswith("query.")}
    probe.load(kept | {name: _dealt(name, values, order) for name, values in query.items()})
    matches_reference(case, what="output after reordering the heads in the query projection alone")


def _dealt(name: str, values: Floats, order: Array) -> Floats:
    """Return a parameter with its heads reordered: rows, or the columns of the output's weight."""
    if name == "output.bias":
        return values
    turned = values.T if name == "output.weight" else values
    width = len(turned) // len(order)
    moved = np.concatenate([turned[head * width : (head + 1) * width] for head in order])
    return moved.T.copy() if name == "output.weight" else moved


@check("multi_head_attention.shared-key-heads")
def test_shared_key_heads(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, low=2)
    if subject.choices.key_heads == "fewer" and not subject.limits.one_key_head:
        if sizes.heads < 4:
            raise Absent(f"{subject.name} has no two query heads that share one of several")
        divisors = [one for one in range(2, sizes.heads) if sizes.heads % one == 0]
        sizes = sizes.but(kv_heads=draw.choose(divisors))
    probe = build_loaded(subject, draw, sizes)
    case = draw_call(draw, probe, lengths=(draw.length(), draw.length(2)))
    matches_reference(case)
    name = draw.choose(("key.weight", "value.weight"))
    turned = np.roll(probe.parameters[name], len(probe.parameters[name]) // 2, axis=0)
    probe.load({**probe.parameters, name: turned})
    matches_reference(case, what=f"output after exchanging heads of the {name}")


@check("multi_head_attention.indivisible-width-refused")
def test_indivisible_width_refused(subject: Subject, draw: Draw) -> None:
    doing, build, _ = _building_indivisible(subject, draw)
    refuses(subject, doing, lambda: _output_of_one_position(build(), draw))


@check("multi_head_attention.indivisible-width-named")
def test_indivisible_width_named(subject: Subject, draw: Draw) -> None:
    doing, build, sizes = _building_indivisible(subject, draw)
    explains_refusal(subject, doing, build, naming=(sizes.d_model, sizes.heads))
    refused_by(subject, doing, build, lambda probe: _output_of_one_position(probe, draw))


def _output_of_one_position(probe: Probe, draw: Draw) -> Array:
    """Return the output for one position: a view of more numbers may fit by chance."""
    return draw_call(draw, probe, kinds=UNORDERED, lengths=(1, 1), batch=1).output()


def _building_indivisible(subject: Subject, draw: Draw) -> tuple[str, Callable[[], Probe], Sizes]:
    """Return in words, as an action and as sizes how a width that heads do not divide is built."""
    if subject.choices.head_width == "d":
        raise Absent("heads as wide as the model do not share its width")
    if subject.limits.rounded_heads:
        raise Absent(f"{subject.name} rounds the width of its heads down, and uses every column")
    heads = draw.integer(2, min(5, max(2, subject.limits.heads or 5)))
    if subject.limits.heads is not None and heads > subject.limits.heads:
        raise Absent(f"{subject.name} is limited to {subject.limits.heads} heads")
    whole = Sizes(d_model=heads * draw.integer(2, 4), heads=heads)
    probe = subject.part(COMPONENT, subject.limits.fitted(whole))
    if not has_parameter_map(probe) and "mode" not in probe.part.capabilities:
        raise Absent("a plain function is not built")
    sizes = whole.but(d_model=whole.d_model - draw.integer(1, heads - 1))
    doing = f"building a width of {sizes.d_model} for {heads} heads"
    return doing, lambda: subject.part(COMPONENT, sizes), sizes


@check("multi_head_attention.parameter-count")
def test_parameter_count(subject: Subject, draw: Draw) -> None:
    for sizes in (draw_sizes(draw), draw_sizes(draw, low=2)):  # one head hides shared ones
        probe = subject.part(COMPONENT, sizes)
        held = probe.do("listing what it holds", lambda part: part.inventory())["parameters"]
        trained = {name: one for name, one in held.items() if one.get("trained", True)}
        found = sum(prod(facts["shape"]) for facts in trained.values())
        wanted = count(COMPONENT, sizes, subject.choices)
        named = ", ".join(f"{name} {facts['shape']}" for name, facts in trained.items())
        holds(found == wanted, f"There are {found} trained numbers, not {wanted}: {named}.")


@check("multi_head_attention.parameters-round-trip")
def test_parameters_round_trip(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw))
    matches_reference(draw_call(draw, probe))
    exported = probe.do("exporting the parameters", lambda part: part.export())
    names, wanted = sorted(exported), sorted(probe.parameters)
    holds(names == wanted, f"The exported parameters are {names}, not {wanted}.")
    for name, values in probe.parameters.items():
        equal(exported[name], values, what=f"exported {name}")
