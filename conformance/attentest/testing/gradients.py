"""Assertions that gradients of inputs and parameters agree with differences of the output."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import numpy as np

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
from attentest.testing.slopes import (
    FINEST,
    SHARE,
    STEPS,
    Steps,
    along,
    coarsest,
    extrapolated,
    formula,
    has_kink,
    is_exact,
    parameters_moved,
    slope_along,
)
from attentest_spec import Gradient
from attentest_spec.contract import Input
from attentest_spec.parameters import shapes, tied
from attentest_spec.setting import Array, Floats

_BEYOND = 1e-3
"""The step along the direction by which a point is left at which there is a kink."""

_WEIGHT = 100.0
"""Magnitude of the cotangent: large enough that a clipped gradient shows."""

_PERTURBED = 3
"""The number of times the last digits are changed, to measure how a rounding is amplified."""

_MOVES = 1e-9
"""Relative change of the reference's output from which a parameter counts as used."""


def agrees_with_differences(probe: Probe, *inputs: Input, draw: Draw) -> None:
    """Demand that vjp and central differences agree along one random direction.

    The direction moves all float inputs and all loaded parameters at once (equal ones together);
    the pulled-back cotangent times the direction is the change of the output along it. Float64
    alone resolves the difference: what computes in float32, or has a softmax in it, is compared
    with differences of the formula, and half precision is absent. A part without dropout is one
    function: recording a gradient or training must not change it, and all its answers are compared.
    """
    _demand_digits(probe)
    output = as_floats(probe.output(*inputs))
    cotangent = draw.floats(*output.shape, scale=_WEIGHT)
    steps = _directions(draw, inputs)
    moves = _moves(probe, draw)
    try:
        _agrees(probe, inputs, output, cotangent, steps, moves)
    except Violation:
        if "mode" in probe.part.capabilities:
            probe.eval()  # a disagreement in training leaves it there
        if not has_kink(probe, inputs, cotangent, moves, steps, own=is_exact(probe)):
            raise
        with parameters_moved(probe, moves, _BEYOND, load=True):
            beyond = along(inputs, steps, _BEYOND)
            output = as_floats(probe.output(*beyond))
            _agrees(probe, beyond, output, cotangent, steps, moves)


def _directions(draw: Draw, inputs: Sequence[Input]) -> list[Floats | None]:
    """Draw a direction for each of the inputs, one for those that are the same array."""
    drawn: dict[int, Floats | None] = {}
    for value in inputs:
        if id(value) not in drawn:
            drawn[id(value)] = _direction(draw, value)
    return [drawn[id(value)] for value in inputs]


def _demand_digits(probe: Probe) -> None:
    """Raise Absent where the arithmetic of a part has too few digits to tell a wrong gradient."""
    if probe.precision not in ("float64", "float32"):
        raise Absent("differences of the output resolve gradients in float64 and float32 alone")


def _agrees(
    probe: Probe,
    inputs: tuple[Input, ...],
    output: Floats,
    cotangent: Floats,
    steps: Sequence[Floats | None],
    moves: Steps,
) -> None:
    """Demand that vjp and central differences agree along one direction, in each mode."""
    share, own = _share(probe), is_exact(probe)

    def difference_at(step: float) -> float:
        return slope_along(probe, inputs, cotangent, moves, step, steps, own=own)

    slopes = [difference_at(STEPS[0])]
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
            slopes.append(difference_at(STEPS[1]))
            slopes.append(extrapolated(*slopes))
        difference = min(abs(pulled - slope) for slope in slopes)
        if own and difference > share * size < abs(slopes[0] - slopes[1]):
            difference = min(difference, abs(pulled - difference_at(FINEST)))
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

    Each is moved alone, together with those that it is tied to. Half precision is absent.
    """
    _demand_digits(probe)
    output = as_floats(probe.expected(*inputs).output)
    cotangent = draw.floats(*output.shape)
    gradient = probe.vjp(inputs, cotangent)
    for name in names:
        moves = _moves(probe, draw, only=name)
        try:
            _matches_formula(probe, inputs, cotangent, gradient, name, moves)
        except Violation:
            if not has_kink(probe, inputs, cotangent, moves):
                raise
            with parameters_moved(probe, moves, _BEYOND, load=True):
                beyond = probe.vjp(inputs, cotangent)
                _matches_formula(probe, inputs, cotangent, beyond, name, moves)


def _matches_formula(
    probe: Probe,
    inputs: tuple[Input, ...],
    cotangent: Floats,
    gradient: Gradient,
    name: str,
    moves: Steps,
) -> None:
    """Demand that the gradient of the parameter `name` agrees with differences of the formula."""
    output = as_floats(probe.expected(*inputs).output)
    pulled = float((gradient_of(probe, gradient, name) * moves[name]).sum())
    slopes = [slope_along(probe, inputs, cotangent, moves, step) for step in STEPS]
    slopes.append(extrapolated(*slopes))
    tolerance = _share(probe) * (1.0 + abs(slopes[0]) + largest(output) * output.size)
    difference = min(abs(pulled - slope) for slope in slopes)
    holds(
        difference <= tolerance
        or difference <= _amplified(probe, inputs, cotangent, moves, slopes[-1]),
        f"The gradient of {name} along a random direction is {pulled:.9g}; in the formula the "
        f"output changes by {slopes[0]:.9g}.",
    )


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
    if is_exact(probe):
        return 0.0
    changes = [
        abs(slope_along(other, values, cotangent, moves, STEPS[-1], steps) - slope)
        for other, values in perturbations(probe, inputs, seeds=range(_PERTURBED))
    ]
    return SAFETY * max(changes)


def _share(probe: Probe) -> float:
    """Return the error of a gradient, relative to what is summed for it."""
    coarse = coarsest(probe)
    if coarse == "float64":
        return SHARE
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


def _along_inputs(gradient: Gradient, steps: Sequence[Floats | None]) -> float:
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


def _reach(probe: Probe, inputs: tuple[Input, ...], name: str, draw: Draw) -> float:
    """Return the relative change of the reference's output per unit of the parameter `name`.

    It is the smaller one of those ahead and behind: at the kink of a relu one of them is 0, and may
    be the gradient.
    """
    moves = _moves(probe, draw, only=name)
    output, changes = formula(probe, inputs), []
    for sign in (STEPS[0], -STEPS[0]):
        with parameters_moved(probe, moves, sign, load=False):
            changes.append(distance(formula(probe, inputs), output))
    return min(changes) / (STEPS[0] * (largest(output) or 1.0))
