"""Differences of the output along a direction, of a part itself or of the formula."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

from attentest.harness.arithmetic import arithmetic, unrounded
from attentest.harness.subject import Probe
from attentest.harness.tolerances import as_floats, largest
from attentest_spec.components import inside
from attentest_spec.contract import Input
from attentest_spec.setting import Floats

STEPS = (1e-6, 1e-7)
"""Steps of a central difference, whose error is the step squared plus rounding over the step.

The second is taken where the first disagrees: the kink of a relu may lie within one step, and
hardly ever within both. Both together give the slope without the square of the step, which is
large where a norm divides by a small deviation.
"""

FINEST = 1e-8
"""The step of a central difference where many kinks of relus lie within the others.

A wide inner layer has hundreds of thousands of them. The error that is granted is no greater.
"""

SHARE = 1e-7
"""Error of a difference, relative to what is summed: a thousand roundings over the last step."""

ATTENTION = "multi_head_attention"
"""The component whose heads are turned."""

Steps = Mapping[str, Floats]


def slope_along(
    probe: Probe,
    inputs: tuple[Input, ...],
    cotangent: Annotated[Floats, "*shape"],
    moves: Steps,
    step: float,
    steps: Sequence[Floats | None] = (),
    *,
    own: bool = False,
) -> float:
    """Return the central difference of the reference's output, weighted by the cotangent.

    The cotangent has the shape of the output. With `own` it is that of the part itself.
    """
    ahead, behind = (
        output_along(probe, inputs, steps, moves, one, own=own) for one in (step, -step)
    )
    return float((cotangent * (ahead - behind)).sum()) / (2 * step)


def extrapolated(coarse: float, fine: float) -> float:
    """Return the slope at a step of 0, from those at both steps."""
    return fine + (fine - coarse) / ((STEPS[0] / STEPS[1]) ** 2 - 1)


def has_kink(
    probe: Probe,
    inputs: tuple[Input, ...],
    cotangent: Annotated[Floats, "*shape"],
    moves: Steps,
    steps: Sequence[Floats | None] = (),
    *,
    own: bool = False,
) -> bool:
    """Say whether the slopes of the formula ahead and behind differ, as at the kink of a relu.

    There no number is the slope, and every one between the two may be the gradient. An input of
    zeros, or short numbers that cancel, put a relu there exactly. Where a slope only changes fast,
    the difference falls with the step. The cotangent has the shape of the output. With `own` the
    slopes are those of the part itself.
    """
    output = output_along(probe, inputs, steps, moves, 0.0, own=own)
    bends = []
    for step in STEPS:
        ahead, behind = (
            output_along(probe, inputs, steps, moves, one, own=own) for one in (step, -step)
        )
        bends.append(abs(float((cotangent * (ahead - 2 * output + behind)).sum())) / step)
    size = 1.0 + largest(cotangent) * largest(output) * output.size
    return bends[-1] > max(SHARE * size, bends[0] / 2)


def output_along(
    probe: Probe,
    inputs: tuple[Input, ...],
    steps: Sequence[Floats | None],
    moves: Steps,
    step: float,
    *,
    own: bool,
) -> Annotated[Floats, "*shape"]:
    """Return the output where inputs and parameters are moved: of the part itself, or the formula.

    It has the shape of the component's output. No `steps` leave the inputs where they are.
    """
    with parameters_moved(probe, moves, step, load=own):
        given = along(inputs, steps or [None] * len(inputs), step)
        return as_floats(probe.output(*given)) if own else formula(probe, given)


def formula(probe: Probe, inputs: tuple[Input, ...]) -> Annotated[Floats, "*shape"]:
    """Return the reference's output, in its shape, without parts in float32.

    Small steps are lost in these, and in inputs and parameters that are rounded to it.
    """
    smooth = unrounded(probe.subject.choices)
    return as_floats(probe.expected(*inputs, choices=smooth).output)


def coarsest(probe: Probe) -> str:
    """Return the coarsest precision inside a part, that of heads which it turns included.

    What turns by a table in float32 may round the heads to it as well.
    """
    choices = probe.subject.choices
    turns = choices.attention_rotary != "none" and choices.rotary_arithmetic == "float32"
    rounds = turns and probe.precision == "float64" and ATTENTION in inside(probe.component)
    return "float32" if rounds else arithmetic(probe)


def is_exact(probe: Probe) -> bool:
    """Say whether nothing of a part rounds to float32, so that small steps show."""
    return coarsest(probe) == "float64"


@contextmanager
def parameters_moved(probe: Probe, moves: Steps, step: float, *, load: bool) -> Iterator[None]:
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


def along(
    inputs: tuple[Input, ...], steps: Sequence[Floats | None], step: float
) -> tuple[Input, ...]:
    """Return the inputs, each moved by `step` of its direction where it has one."""
    return tuple(
        value + step * direction if direction is not None else value  # type: ignore[operator]
        for value, direction in zip(inputs, steps, strict=True)
    )
