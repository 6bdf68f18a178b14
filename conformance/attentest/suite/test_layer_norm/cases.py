"""Calls of a layer norm, and its initial parameters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.testing.assertions import matches, same_shape
from attentest.testing.draw import Draw
from attentest.testing.invariants import build_with_parameters
from attentest_spec import Sizes
from attentest_spec.parameters import shapes
from attentest_spec.precision import smallest
from attentest_spec.setting import Array, Floats


@dataclass(frozen=True)
class NormCall:
    """One call of a layer norm on x (B, S, D); `loaded` where it has a parameter map."""

    probe: Probe
    x: Floats
    loaded: bool

    def output(self) -> Array:
        """Return the output for x, demanded to be of its shape."""
        output = self.probe.output(self.x)
        same_shape(output, self.x.shape)
        return output

    def checked_output(self) -> Array:
        """Return the output for x, demanded to be that of the reference."""
        output = self.output()
        matches(self.probe, self.x, actual=output)
        return output


def build_norm(subject: Subject, draw: Draw, width: int, precision: str = "") -> tuple[Probe, bool]:
    """Build a norm with drawn parameters; a bare callable has the initial ones."""
    sizes = subject.limits.fitted(Sizes(d_model=width, heads=1))
    probe = build_with_parameters(subject, draw, "layer_norm", sizes, precision=precision)
    loaded = bool(probe.parameters)
    if not loaded:
        probe.parameters = initial_parameters(probe)
    return probe, loaded


def initial_parameters(probe: Probe) -> dict[str, Floats]:
    """Return the initial parameters of a norm: ones and zeros."""
    initial = {"gain": np.ones, "bias": np.zeros}
    declared = shapes("layer_norm", probe.sizes, probe.subject.choices)
    return {name: initial[name](shape) for name, shape in declared.items()}


def draw_call(
    subject: Subject,
    draw: Draw,
    *,
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
    probe, loaded = build_norm(subject, draw, draw.integer(*widths), precision)
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


def needs_epsilon(subject: Subject) -> None:
    """End as absent where nothing is added to the variance of a constant row."""
    epsilon = subject.choices.norm_epsilon
    if epsilon == 0:
        raise Absent("without an epsilon a constant row has no value")
    if epsilon < smallest(subject.precision):
        raise Absent(f"an epsilon of {epsilon:g} may be 0 in {subject.precision}")
