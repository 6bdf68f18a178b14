"""Checks of the chapter `mixture_of_experts`: which experts work on which positions."""

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, distance, error_bound
from attentest.judging.check import check
from attentest.suite.test_mixture_of_experts.cases import (
    COMPONENT,
    MixtureCall,
    draw_call,
    draw_rows,
    draw_sizes,
    of_expert,
    spread,
)
from attentest.testing.assertions import holds, matches
from attentest.testing.draw import Draw
from attentest.testing.invariants import (
    agree_up_to_rounding,
    build_with_parameters,
    draw_order,
)
from attentest_spec.setting import Array


@check("mixture_of_experts.chosen-alone")
def test_chosen_alone(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, shape=(2, 3))
    probe, before, chosen = case.probe, case.output(), case.chosen()
    row = draw.integer(0, len(chosen) - 1)
    alone = np.arange(len(chosen)).reshape(before.shape[:2]) == row
    held = dict(probe.parameters)
    others = [n for n in range(probe.sizes.experts) if n not in chosen[row]]
    probe.load(spread(draw, probe, [name for n in others for name in of_expert(probe, n)]))
    agree_up_to_rounding(
        probe,
        case.x,
        actual=case.output(),
        expected=before,
        rows=alone,
        what="output at a position after changing the experts that it did not choose",
    )
    probe.load(held)
    probe.load(spread(draw, probe, of_expert(probe, int(draw.choose(chosen[row].tolist())))))
    matches(
        probe,
        case.x,
        actual=case.output(),
        rows=alone,
        what="output at a position after changing an expert that it chose",
    )


@check("mixture_of_experts.greatest-scores")
def test_greatest_scores(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, shape=(2, 4))
    output = as_floats(case.output())
    tolerance = error_bound(case.probe, (case.x,), output)
    actual = output.reshape(-1, case.x.shape[-1])
    right = case.chosen()
    for row, found in enumerate(actual):
        fitting = [
            experts
            for experts, output in case.choices_of_experts()
            if distance(found, output.reshape(actual.shape)[row]) <= tolerance
        ]
        wanted = tuple(sorted(right[row].tolist()))
        holds(
            not fitting or wanted in fitting,
            f"At position {row % case.x.shape[1]} of sample {row // case.x.shape[1]} the numbers "
            f"are those of experts {_listed(*fitting[:1])}; the greatest scores are those of "
            f"{_listed(wanted)}.",
        )
    matches(case.probe, case.x, actual=output)


def _listed(experts: tuple[int, ...] = ()) -> str:
    return " and ".join(map(str, experts))


@check("mixture_of_experts.ties")
def test_ties(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    router = {
        name: np.zeros_like(values)
        for name, values in case.probe.parameters.items()
        if name.startswith("router.")
    }
    case.probe.load({**case.probe.parameters, **router})
    actual = case.output()
    least = np.full(actual.shape[:2], np.inf)
    for _, output in case.choices_of_experts():
        least = np.minimum(least, np.abs(as_floats(actual) - output).max(axis=-1))
    tolerance = max(
        error_bound(case.probe, (case.x,), output) for _, output in case.choices_of_experts()
    )
    holds(
        bool((least <= tolerance).all()),
        f"All scores are equal, and at some position the output differs by {least.max():.3g} from "
        f"that of every set of {case.probe.sizes.chosen_experts} experts.",
        actual=actual,
    )


@check("mixture_of_experts.order-of-experts")
def test_order_of_experts(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    before = case.output()
    order = draw_order(draw, case.probe.sizes.experts)
    case.probe.load({name: _moved(case, name, order) for name in case.probe.parameters})
    agree_up_to_rounding(
        case.probe,
        case.x,
        actual=case.output(),
        expected=before,
        what="output with the experts in another order",
    )
    matches(case.probe, case.x, actual=before, what="output in the first order")


def _moved(case: MixtureCall, name: str, order: Array) -> Array:
    """Return the parameter `name` of the experts in another order."""
    held = case.probe.parameters
    if name.startswith("router."):
        return held[name][order]
    if not name.startswith("experts."):
        return held[name]
    _, number, rest = name.split(".", maxsplit=2)
    return held[f"experts.{order[int(number)]}.{rest}"]


@check("mixture_of_experts.own-parameters")
def test_own_parameters(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, shape=(3, 4))
    probe, before, chosen = case.probe, case.output(), case.chosen()
    uses = [(chosen == number).any(axis=-1) for number in range(probe.sizes.experts)]
    partly = [number for number, rows in enumerate(uses) if rows.any() and not rows.all()]
    if not partly:
        return  # all positions have chosen the same experts
    number = draw.choose(partly)
    probe.load(spread(draw, probe, of_expert(probe, number)))
    after, rows = case.output(), uses[number].reshape(before.shape[:2])
    agree_up_to_rounding(
        probe,
        case.x,
        actual=after,
        expected=before,
        rows=~rows,
        what=f"output where expert {number} is not chosen, after changing it",
    )
    matches(
        probe,
        case.x,
        actual=after,
        rows=rows,
        what=f"output where expert {number} is chosen, after changing it",
    )


@check("mixture_of_experts.position-wise")
def test_position_wise(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    batch, few = draw.choose((2, 3)), draw.length(min(2, subject.limits.length or 2))
    length = draw.choose((few, draw.long()))
    x = draw_rows(draw, probe, batch, length)
    together = MixtureCall(probe, x).checked_output()
    alone = np.zeros((batch, length), dtype=bool)
    alone[draw.integer(0, batch - 1), draw.integer(0, length - 1)] = True
    others = cast(draw_rows(draw, probe, batch, length) * 2.0, probe.precision)
    agree_up_to_rounding(
        probe,
        x,
        actual=probe.output(np.where(alone[..., None], x, others)),
        expected=together,
        rows=alone,
        what="output at a position after changing all others",
    )
    agree_up_to_rounding(
        probe,
        x,
        actual=probe.output(x[::-1, ::-1]),
        expected=together[::-1, ::-1],
        what="output for positions and samples in reverse",
    )
