"""Assertions about stacks of layers: their own parameters, order, depth and modes."""

import copy
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from attentest.harness.errors import BackendError
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, error_bound
from attentest.testing.assertions import equal, holds
from attentest.testing.common import parameters_round_trip
from attentest.testing.draw import Draw
from attentest.testing.dropout_rate import (
    Path,
    build_path,
    drops_at_the_rate,
    drops_single_keys,
    path_input,
)
from attentest.testing.layer_calls import LayerCall, matches_reference, open_mask, zero_maps
from attentest_spec import Setting
from attentest_spec.contract import Input
from attentest_spec.layer_norm import layer_norm
from attentest_spec.parameters import count, tied
from attentest_spec.setting import Array

ALMOST_ALL = 1.0 - 2.0**-13
"""A dropout rate that drops all: a row of 12 columns keeps a number once in 700 times."""


def layers_own_parameters(draw: Draw, case: LayerCall) -> None:
    """Demand that every layer of a stack exports the parameters that were loaded into it."""
    matches_reference(case)
    again = draw.parameters(case.probe.component, case.probe.sizes, precision=case.probe.precision)
    for given in (case.probe.parameters, again):
        case.probe.load(given)
        exported = case.probe.do("exporting the parameters", lambda part: part.export())
        parameters_round_trip(case.probe, exported, given)
    matches_reference(case, what="output after loading other parameters")


def compose_layers(case: LayerCall) -> Annotated[Array, "B L D"]:
    """Return the output (B, L, D) of the layers of a stack, called one after the other.

    The backend's own layers are taken where it provides them alone, the reference's otherwise.
    """
    subject, component = case.probe.subject, f"{case.probe.component}_layer"
    if not subject.provides(component):
        return as_floats(case.probe.expected(*case.inputs).output)
    given = Setting(case.probe.sizes, subject.choices, case.probe.parameters)
    x = case.x
    for number in range(case.probe.sizes.layers):
        own = given.under(f"layers.{number}").parameters
        layer = subject.part(
            component, case.probe.sizes, parameters=own, precision=case.probe.precision
        )
        x = as_floats(case.but(probe=layer, x=x).output())
    return layer_norm(given.under("norm"), x) if subject.choices.final_norm == "present" else x


def layer_adds_its_parameters(subject: Subject, draw: Draw, component: str) -> None:
    """Demand that one more layer adds the parameters of one layer, and that there are any."""
    shallow = draw.layers(2) - 1
    sizes = draw.sizes(layers=shallow)
    held = [_trained(subject, component, sizes.but(layers=shallow + more)) for more in (0, 1)]
    wanted = [
        count(component, sizes.but(layers=shallow + more), subject.choices) for more in (0, 1)
    ]
    holds(
        held[1] - held[0] == wanted[1] - wanted[0],
        f"Layer {shallow + 1} adds {held[1] - held[0]} trained numbers to {held[0]}; "
        f"a layer has {wanted[1] - wanted[0]}.",
    )


def _trained(subject: Subject, component: str, sizes: Any) -> int:
    probe = subject.part(component, sizes)
    listed = probe.do("taking inventory", lambda part: part.inventory())["parameters"]
    return sum(int(np.prod(one["shape"])) for one in listed.values() if one.get("trained", True))


def shares_one_norm(case: LayerCall) -> None:
    """Demand that norms declared as shared are one: loaded with different values, they are equal.

    A backend may refuse to load parameters that contradict each other.
    """
    twins = tied(case.probe.component, case.probe.sizes, case.probe.subject.choices)
    loaded = case.probe.parameters
    changed = {name: values + (1.0 if name in twins else 0.0) for name, values in loaded.items()}
    try:
        case.probe.load(changed)
    except BackendError as refusal:
        if not isinstance(refusal.cause, ValueError):
            raise
    exported = case.probe.do("exporting the parameters", lambda part: part.export())
    for name, twin in twins.items():
        equal(
            exported[name], exported[twin], what=f"{name}, declared one with {twin}, after loading"
        )
    case.probe.load(loaded)


def repeats_in_evaluation(case: LayerCall) -> None:
    """Demand bit-exact output at every call in evaluation mode, before and after training mode."""
    first = case.output().copy()
    equal(case.output(), first, what="output of the second call")
    case.probe.train()
    case.output()
    case.probe.eval()
    equal(case.output(), first, what="output in evaluation after training")


def drops_all_branches(case: LayerCall, last: Sequence[str]) -> None:
    """Demand that in training, at a rate of almost 1, the identity paths are left.

    `last` names the last linear maps of the sublayers; with zeros in them the reference computes
    the identity paths. The output of evaluation has to be that of the whole formula.
    """
    matches_reference(case, what="output in evaluation")
    bare = copy.copy(case.probe)
    bare.parameters = zero_maps(bare.parameters, last)
    wanted = as_floats(bare.expected(*case.inputs).output)
    tolerance = error_bound(bare, case.inputs, wanted)
    case.probe.train()
    found = as_floats(case.output())
    case.probe.eval()
    left = (np.abs(found - wanted).max(axis=-1) <= tolerance)[case.rows]
    holds(
        2 * int(left.sum()) >= left.size,
        f"At a dropout rate of {case.probe.sizes.dropout:.5f}, the identity paths are left at "
        f"{int(left.sum())} of {left.size} positions.",
        actual=found,
        expected=wanted,
    )


def drops_branches_at_the_rate(
    subject: Subject, draw: Draw, component: str, last: Sequence[str]
) -> None:
    """Demand that a layer drops at its rate, and inside its attention where that alone does so.

    `last` names the last linear maps of the sublayers. A part that drops nothing is not judged.
    """
    sizes = draw.sizes(heads=draw.several(), head_width=4, layers=1)
    # Dropout before a square multiplies by a square, which looks as two sites do.
    squared = subject.choices.activation == "relu-squared"
    for path in (_path(one) for one in last if not (squared and one.endswith("outer"))):
        probe = build_path(subject, component, sizes, path)
        drops_at_the_rate(probe, path, *_path_inputs(subject, component, path_input(sizes)))
    if not subject.provides("multi_head_attention"):
        return
    alone = _path("output")
    two = path_input(sizes, length=2)
    part = build_path(subject, "multi_head_attention", sizes, alone)
    if not drops_single_keys(part, alone, two, two, two, None):
        return
    for end in last:
        if end.endswith("attention.output"):
            path = _path(end)
            probe = build_path(subject, component, sizes, path)
            name = end.removesuffix(".output").replace("_", "-")
            holds(
                drops_single_keys(probe, path, *_path_inputs(subject, component, two)),
                f"Multi-head attention alone drops single keys at a rate of "
                f"{probe.sizes.dropout}; the {name} of the {component} drops none.",
            )


def _path(last: str) -> Path:
    """Return the path of one number through the sublayer whose last linear map is `last`."""
    if last.endswith("outer"):
        return {last.replace("outer", "inner") + ".weight": 64.0, f"{last}.weight": 1 / 64}
    return {last.replace("output", "value") + ".weight": 1.0, f"{last}.weight": 1.0}


def _path_inputs(
    subject: Subject, component: str, x: Annotated[Array, "1 L D"]
) -> tuple[Input, ...]:
    """Return the inputs of a layer for x (1, L, D), with nothing hidden."""

    def mask(role: str) -> Array | None:
        free = "none" in subject.limits.masks_of(role)
        return None if free else open_mask(subject, 1, x.shape[1], x.shape[1], role)

    own = mask("mask")
    return (x, own) if component.startswith("encoder") else (x, x, mask("source_mask"), own)
