"""Calls of a norm, layer norm or RMS norm, and its initial parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.testing.assertions import holds, matches, same_shape
from attentest.testing.draw import Draw
from attentest.testing.invariants import build_with_parameters
from attentest_spec import Sizes
from attentest_spec.parameters import shapes
from attentest_spec.precision import smallest
from attentest_spec.setting import Array, Floats


@dataclass(frozen=True)
class NormCall:
    """One call of a norm on x (B, S, D); `loaded` where it has a parameter map."""

    probe: Probe
    x: Floats
    loaded: bool

    def output(self) -> Annotated[Array, "B S D"]:
        """Return the output (B, S, D) for x, demanded to be of its shape."""
        output = self.probe.output(self.x)
        same_shape(output, self.x.shape)
        return output

    def checked_output(self) -> Annotated[Array, "B S D"]:
        """Return the output (B, S, D) for x, demanded to be that of the reference."""
        output = self.output()
        matches(self.probe, self.x, actual=output)
        return output


def trains_its_rows(probe: Probe) -> None:
    """Demand that the weight and the bias of a norm are trained, and nothing else.

    A row of the shape (1, 1, D) is one of the shape (D,), and so is one of the shape (D, 1), of
    series with their channels first: axes of length 1 broadcast.
    """
    held = probe.do("listing what it holds", lambda part: part.inventory())["parameters"]
    found = {
        name: tuple(facts["shape"]) for name, facts in held.items() if facts.get("trained", True)
    }
    component, width = probe.component, probe.sizes.d_model
    wanted = shapes(component, probe.sizes, probe.subject.choices)
    holds(
        sorted(map(_row, found.values())) == sorted(wanted.values()),
        f"Trained are {found or 'no parameters'}; {' and '.join(wanted) or 'no parameters'} of "
        f"shape {(width,)} should be.",
    )


def _row(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1) or shape[-1:]


def build_norm(
    subject: Subject, draw: Draw, component: str, width: int, precision: str = ""
) -> tuple[Probe, bool]:
    """Build a norm with drawn parameters; a bare callable has the initial ones."""
    sizes = subject.limits.fitted(Sizes(d_model=width, heads=1))
    probe = build_with_parameters(subject, draw, component, sizes, precision=precision)
    loaded = bool(probe.parameters)
    if not loaded:
        probe.parameters = initial_parameters(probe)
    return probe, loaded


def require_initial_values(subject: Subject) -> None:
    """End as absent where the parameters of a new norm are initialised by others."""
    if not subject.limits.initial_values:
        raise Absent(f"the parameters of {subject.name} are initialised by others")


def initial_parameters(probe: Probe) -> dict[str, Floats]:
    """Return the initial parameters of a norm: it multiplies by 1 and adds 0."""
    choices = probe.subject.choices
    added = probe.component == "rms_norm" and choices.rms_weight == "one-plus-weight"
    initial = {"gain": np.zeros if added else np.ones, "bias": np.zeros}
    declared = shapes(probe.component, probe.sizes, choices)
    return {name: initial[name](shape) for name, shape in declared.items()}


def draw_norm_call(
    subject: Subject,
    draw: Draw,
    *,
    component: str,
    scale: float = 0.0,
    offset: float = 0.0,
    widths: tuple[int, int] = (2, 12),
    shape: Sequence[int] = (),
    precision: str = "",
) -> NormCall:
    """Draw a call; the columns of every row differ, about one `scale` around `offset` of them.

    In float16 the scale is one whose squares it holds: `half-precision-large` is about others.
    """
    batch, length = shape or (draw.batch(), draw.length())
    probe, loaded = build_norm(subject, draw, component, draw.integer(*widths), precision)
    width = probe.sizes.d_model
    rows = np.round(draw.rng.normal(size=(batch, length, width)), 2)
    flat = np.ptp(rows, axis=-1) < 0.5
    rows[..., 0] += np.where(flat, 1.0, 0.0)
    wanted = scale or draw.scale()
    rows = (rows + offset) * (min(max(wanted, 0.1), 10.0) if is_narrow(probe.precision) else wanted)
    return NormCall(probe, cast(rows, probe.precision), loaded)


def is_narrow(precision: str) -> bool:
    """Say whether squares of numbers in use are out of the range of `precision`."""
    return precision == "float16"


def needs_epsilon(subject: Subject, choice: str) -> None:
    """End as absent where nothing protects a row without a scale: the epsilon `choice` is 0."""
    epsilon = float(subject.choices[choice])
    if epsilon == 0:
        raise Absent("without an epsilon a constant row has no value")
    if epsilon < smallest(subject.precision):
        raise Absent(f"an epsilon of {epsilon:g} may be 0 in {subject.precision}")
