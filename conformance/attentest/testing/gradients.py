"""Assertions that gradients of inputs and parameters agree with differences of the output."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

import numpy as np

from attentest.harness.arithmetic import arithmetic, unrounded
from attentest.harness.errors import Absent, Violation
from attentest.harness.subject import Probe
from attentest.harness.tolerances import (
    SAFETY,
    as_floats,
    distance,
    largest,
    perturbations,
    rounding,
)
from attentest.testing.assertions import finite, holds, same_shape
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding
from attentest_spec import Gradient
from attentest_spec.contract import Input
from attentest_spec.parameters import shapes, tied
from attentest_spec.setting import Array, Floats

_STEPS = (1e-6, 1e-7)
"""Steps of a central difference, whose error is the step squared plus rounding over the step.

The second is taken where the first disagrees: the kink of a relu may lie within one step, and
hardly ever within both. Both together give the slope without the square of the step, which is
large where a norm divides by a small deviation.
"""

_SHARE = 1e-7
"""Error of a difference, relative to what is summed: a thousand roundings over the last step."""

_WEIGHT = 100.0
"""Magnitude of the cotangent: large enough that a clipped gradient shows."""

_PERTURBED = 3
"""The number of times the last digits are changed, to measure how a rounding is amplified."""

_MOVES = 1e-9
"""Relative change of the reference's output from which a parameter counts as used."""

Steps = Mapping[str, Floats]


def agrees_with_differences(probe: Probe, *inputs: Input, draw: Draw) -> None:
    """Demand that vjp and central differences agree along one random direction.

    The direction moves all float inputs and all loaded parameters at once (tied ones together);
    the pulled-back cotangent times the direction is the change of the output along it. Float64
    alone resolves the difference, so other precisions are absent, and a part with a softmax in
    float32 is compared with differences of the formula. A part without dropout is one function:
    recording a gradient or training must not change it, and all its answers are compared.
    """
    if probe.precision != "float64":
        raise Absent("differences of the output resolve gradients in float64 alone")
    share = _share(probe)
    output = as_floats(probe.output(*inputs))
    cotangent = draw.floats(*output.shape, scale=_WEIGHT)
    steps = [_direction(draw, value) for value in inputs]
    moves = _moves(probe, draw)
    slopes = [_slope(probe, inputs, cotangent, steps, moves, _STEPS[0])]
    size = 1.0 + abs(slopes[0]) + _WEIGHT * largest(output) * output.size
    for mode in _modes(probe):
        gradient = probe.vjp(inputs, cotangent)
        agree_up_to_rounding(
            probe,
            *inputs,
            actual=gradient.output,
            expected=output,
            what=f"output while a gradient is recorded, in {mode} mode,",
        )
        pulled = _along_inputs(gradient, steps) + _along_parameters(probe, gradient, moves)
        if len(slopes) == 1 and not abs(pulled - slopes[0]) <= share * size:
            slopes.append(_slope(probe, inputs, cotangent, steps, moves, _STEPS[1]))
            slopes.append(_extrapolated(*slopes))
        difference = min(abs(pulled - slope) for slope in slopes)
        holds(
            difference <= share * size
            or difference <= _amplified(probe, inputs, cotangent, moves, slopes[-1], steps),
            f"The gradient along a random direction is {pulled:.9g} in {mode} mode; the output "
            f"changes by {slopes[-1]:.9g}.",
        )


def _modes(probe: Probe) -> Iterator[str]:
    """Switch to each mode in which the part is the same function, and yield its name."""
    yield "evaluation"
    fixed = probe.subject.limits.fixed_dropout
    if probe.sizes.dropout == 0 and not fixed and "mode" in probe.part.capabilities:
        probe.train()
        yield "training"
        probe.eval()


def every_parameter_reached(
    probe: Probe, *inputs: Input, draw: Draw, except_: tuple[str, ...] = ("key.bias",)
) -> Mapping[str, Floats]:
    """Demand a finite gradient for every loaded parameter, not zero, and return the gradients.

    `except_` names endings that need none: the bias of the keys never changes a softmax. A
    gradient of zero is right where the reference's output does not change either (a relu without a
    positive input, queries with a single key); so draw several keys, positions and samples.
    """
    output = as_floats(probe.output(*inputs))
    gradient = probe.vjp(inputs, draw.floats(*output.shape))
    gradients = {name: gradient_of(probe, gradient, name) for name in probe.parameters}
    for name, values in gradients.items():
        if values.any() or any(f".{name}".endswith(f".{ending}") for ending in except_):
            continue
        moved = _reach(probe, inputs, name, draw)
        holds(
            moved <= _MOVES,
            f"No gradient reaches {name}, and moving it changes the output by {moved:.3g} of it "
            "per unit.",
        )
    return gradients


def gradients_match_formula(probe: Probe, *inputs: Input, names: Iterable[str], draw: Draw) -> None:
    """Demand that the gradient of each parameter in `names` agrees with differences of the formula.

    Each is moved alone, together with those that it is tied to. Float64 alone resolves it.
    """
    if probe.precision != "float64":
        raise Absent("differences of the output resolve gradients in float64 alone")
    output = as_floats(probe.expected(*inputs).output)
    cotangent = draw.floats(*output.shape)
    gradient = probe.vjp(inputs, cotangent)
    for name in names:
        moves = _moves(probe, draw, only=name)
        pulled = float((gradient_of(probe, gradient, name) * moves[name]).sum())
        slopes = [_formula_slope(probe, inputs, cotangent, moves, step) for step in _STEPS]
        slopes.append(_extrapolated(*slopes))
        tolerance = _share(probe) * (1.0 + abs(slopes[0]) + largest(output) * output.size)
        difference = min(abs(pulled - slope) for slope in slopes)
        holds(
            difference <= tolerance
            or difference <= _amplified(probe, inputs, cotangent, moves, slopes[-1]),
            f"The gradient of {name} along a random direction is {pulled:.9g}; in the formula the "
            f"output changes by {slopes[0]:.9g}.",
        )


def _extrapolated(coarse: float, fine: float) -> float:
    """Return the slope at a step of 0, from those at both steps."""
    return fine + (fine - coarse) / ((_STEPS[0] / _STEPS[1]) ** 2 - 1)


def _formula_slope(
    probe: Probe,
    inputs: tuple[Input, ...],
    cotangent: Array,
    moves: Steps,
    step: float,
    steps: Sequence[Floats | None] = (),
) -> float:
    """Return the central difference of the reference's output, weighted by the cotangent."""
    still = steps or [None] * len(inputs)
    moved = []
    for sign in (step, -step):
        with _moved(probe, moves, sign, load=False):
            moved.append(_formula(probe, _along(inputs, still, sign)))
    return float((cotangent * (moved[0] - moved[1])).sum()) / (2 * step)


def _amplified(
    probe: Probe,
    inputs: tuple[Input, ...],
    cotangent: Array,
    moves: Steps,
    slope: float,
    steps: Sequence[Floats | None] = (),
) -> float:
    """Return the error of a gradient whose part rounds to float32 inside; 0 of any other part.

    Measured on the formula: by how much its slope changes with the last digits of all numbers.
    Layers of norms amplify a rounding far beyond what is summed.
    """
    if arithmetic(probe) == probe.precision:
        return 0.0
    changes = [
        abs(_formula_slope(other, values, cotangent, moves, _STEPS[-1], steps) - slope)
        for other, values in perturbations(probe, inputs, seeds=range(_PERTURBED))
    ]
    return SAFETY * max(changes)


def _formula(probe: Probe, inputs: tuple[Input, ...]) -> Floats:
    """Return the reference's output without parts in float32, where small steps are lost."""
    smooth = unrounded(probe.subject.choices)
    return as_floats(probe.expected(*inputs, choices=smooth).output)


def _share(probe: Probe) -> float:
    """Return the error of a gradient, relative to what is summed for it."""
    coarse = arithmetic(probe)
    if coarse == probe.precision:
        return _SHARE
    if not probe.parameters and shapes(probe.component, probe.sizes, probe.subject.choices):
        raise Absent(f"differences of what {coarse} rounds resolve no gradient")
    return rounding(coarse, 1)


def gradient_of(probe: Probe, gradient: Gradient, name: str) -> Annotated[Floats, "*shape"]:
    """Return the gradient of the parameter `name`; demand its canonical shape, finite numbers."""
    if name not in gradient.parameters:
        raise Violation(f"There is no gradient for {name}.")
    values = as_floats(gradient.parameters[name])
    same_shape(values, probe.parameters[name].shape, what=f"gradient of {name}")
    finite(values, what=f"gradient of {name}")
    return values


def gradient_to(
    gradient: Gradient, number: int, name: str, shape: tuple[int, ...]
) -> Annotated[Floats, "*pulled"]:
    """Return the gradient of the input `number`; demand `shape`, and finite numbers."""
    pulled = gradient.inputs[number]
    if pulled is None:
        raise Violation(f"No gradient reaches the {name}.")
    same_shape(pulled, shape, what=f"gradient of the {name}")
    finite(pulled, what=f"gradient of the {name}")
    return as_floats(pulled)


def _direction(draw: Draw, value: Input) -> Floats | None:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return draw.floats(*value.shape)
    return None


def _twins(probe: Probe) -> dict[str, str]:
    """Return the name of the other parameter for every one that is tied to another."""
    return tied(probe.component, probe.sizes, probe.subject.choices)


def _moves(probe: Probe, draw: Draw, only: str = "") -> dict[str, Floats]:
    """Draw a direction for the parameters, the same for tied ones; `only` moves one of them."""
    twins = _twins(probe)
    chosen = twins.get(only, only)
    drawn: dict[str, Floats] = {}
    for name, values in probe.parameters.items():
        root = twins.get(name, name)
        if root not in drawn:
            moves = not only or root == chosen
            drawn[root] = draw.floats(*values.shape) if moves else np.zeros_like(values)
        drawn[name] = drawn[root]
    return drawn


def _along_inputs(gradient: Gradient, steps: list[Floats | None]) -> float:
    total = 0.0
    for number, step in enumerate(steps):
        if step is not None:
            pulled = gradient_to(gradient, number, f"input number {number}", step.shape)
            total += float((pulled * step).sum())
    return total


def _along_parameters(probe: Probe, gradient: Gradient, moves: Steps) -> float:
    """Sum over the parameters, tied ones once: each name carries the whole gradient."""
    twins = _twins(probe)
    return sum(
        float((gradient_of(probe, gradient, name) * step).sum())
        for name, step in moves.items()
        if name not in twins
    )


def _slope(
    probe: Probe,
    inputs: tuple[Input, ...],
    cotangent: Array,
    steps: list[Floats | None],
    moves: Steps,
    step: float,
) -> float:
    """Return the central difference of the output, weighted by the cotangent.

    Where something inside rounds to float32 the steps are lost in it, and the formula is used.
    """
    if arithmetic(probe) != probe.precision:
        return _formula_slope(probe, inputs, cotangent, moves, step, steps)
    moved = []
    for sign in (step, -step):
        with _moved(probe, moves, sign, load=True):
            moved.append(as_floats(probe.output(*_along(inputs, steps, sign))))
    return float((cotangent * (moved[0] - moved[1])).sum()) / (2 * step)


def _reach(probe: Probe, inputs: tuple[Input, ...], name: str, draw: Draw) -> float:
    """Return the relative change of the reference's output per unit of the parameter `name`."""
    moves = _moves(probe, draw, only=name)
    outputs = []
    for sign in (_STEPS[0], -_STEPS[0]):
        with _moved(probe, moves, sign, load=False):
            outputs.append(_formula(probe, inputs))
    return distance(outputs[0], outputs[1]) / (2 * _STEPS[0] * (largest(outputs[0]) or 1.0))


@contextmanager
def _moved(probe: Probe, moves: Steps, step: float, *, load: bool) -> Iterator[None]:
    """Move the parameters of the reference by `step`, and the backend's too where `load` is set."""
    original = probe.parameters
    if not original:
        yield
        return
    moved = {name: values + step * moves[name] for name, values in original.items()}
    try:
        probe.load(moved) if load else setattr(probe, "parameters", moved)
        yield
    finally:
        probe.load(original) if load else setattr(probe, "parameters", original)


def _along(
    inputs: tuple[Input, ...], steps: Sequence[Floats | None], step: float
) -> tuple[Input, ...]:
    return tuple(
        value + step * direction if direction is not None else value  # type: ignore[operator]
        for value, direction in zip(inputs, steps, strict=True)
    )
