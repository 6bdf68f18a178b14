"""Checks gradients against differences of the backend's own output."""

import numpy as np
from attentest_spec.contract import Input
from attentest_spec.setting import Floats

from attentest.compare import as_floats, holds, largest
from attentest.draw import Draw
from attentest.outcome import Absent
from attentest.subject import Probe

_STEP = 1e-5
_SHARE = 1e-6
"""A central difference with this step is right to about step squared, and rounding over step."""


def agrees_with_differences(probe: Probe, *inputs: Input, draw: Draw) -> None:
    """Demand that vjp and central differences agree along one random direction of all inputs.

    The pulled-back cotangent times the direction is the change of the output along it; float64
    alone resolves the difference, so other precisions are absent.
    """
    if probe.precision != "float64":
        raise Absent("differences of the output resolve gradients in float64 alone")
    output = as_floats(probe.output(*inputs))
    cotangent = draw.floats(*output.shape)
    gradient = probe.vjp(inputs, cotangent)
    steps = [_direction(draw, value) for value in inputs]
    pulled = sum(
        float((as_floats(found) * step).sum())
        for found, step in zip(gradient.inputs, steps, strict=True)
        if step is not None
    )
    moved = [as_floats(probe.output(*_along(inputs, steps, sign))) for sign in (1.0, -1.0)]
    measured = float((cotangent * (moved[0] - moved[1])).sum()) / (2 * _STEP)
    size = 1.0 + abs(measured) + largest(output) * output.size
    holds(
        abs(pulled - measured) <= _SHARE * size,
        f"The gradient along a random direction is {pulled:.9g}; the output changes by "
        f"{measured:.9g}.",
    )


def _direction(draw: Draw, value: Input) -> Floats | None:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return draw.floats(*value.shape)
    return None


def _along(inputs: tuple[Input, ...], steps: list[Floats | None], sign: float) -> tuple[Input, ...]:
    return tuple(
        value + sign * _STEP * step if step is not None else value  # type: ignore[operator]
        for value, step in zip(inputs, steps, strict=True)
    )
