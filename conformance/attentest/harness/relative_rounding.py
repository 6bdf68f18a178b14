"""Rounding of an RMS norm, which is relative to every single number."""

from typing import Annotated

import numpy as np

from attentest.harness.arithmetic import arithmetic, unrounded
from attentest.harness.subject import Probe
from attentest.harness.tolerances import as_floats, rounding
from attentest_spec import Choices
from attentest_spec.rms_norm import rms_norm
from attentest_spec.setting import Array, Floats, Setting


def exceeds_rounding(
    probe: Probe,
    x: Annotated[Floats, "*rows D"],
    actual: Annotated[Array, "*rows D"],
    choices: Choices | None = None,
) -> Annotated[Array, "*rows D"]:
    """Return where `actual` (.., D), an RMS norm of x (.., D), is wrong by more than it rounds.

    An RMS norm subtracts nothing before its bias: what every step rounds is relative to the number
    itself, so that 0 stays 0. Other sources are 1 + weight, which rounds a unit of 1, and the bias.
    """
    chosen, parameters = choices or probe.subject.choices, probe.parameters
    exact = unrounded(chosen)
    expected = rms_norm(Setting(probe.sizes, exact, parameters), as_floats(x))
    bare = exact.but(rms_weight="none", rms_bias="none")
    row = np.abs(rms_norm(Setting(probe.sizes, bare), as_floats(x)))
    size = row * (1.0 + np.abs(parameters.get("gain", 1.0))) + np.abs(parameters.get("bias", 0.0))
    # As many roundings as columns are summed, the division, the weight and the bias.
    unit = rounding(arithmetic(probe, chosen), x.shape[-1] + 4)
    exceeded: Array = np.abs(as_floats(actual) - expected) > unit * size
    return exceeded


def with_zeros(x: Annotated[Floats, "*rows D"]) -> Annotated[Floats, "*rows D"]:
    """Return x (.., D) with its first column 0: nothing is rounded there."""
    zeros = x.copy()
    zeros[..., 0] = 0.0
    return zeros
