"""Dependence of the positions of a layer or stack on other positions and on the memory."""

from typing import Annotated

import numpy as np

from attentest.harness.subject import Probe
from attentest.harness.tolerances import as_floats, error_bound
from attentest.testing.assertions import equal, holds
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradient_to
from attentest.testing.layer_calls import LayerCall
from attentest_spec.setting import Array, Floats


def replace_positions(
    draw: Draw,
    x: Annotated[Floats, "B L D"],
    where: Annotated[Array, "B L"] | np.bool_,
    scale: float = 1.0,
) -> Annotated[Floats, "B L D"]:
    """Return x (B, L, D) with other numbers at the positions `where` (B, L)."""
    other = draw.floats(*x.shape, scale=scale)
    return np.where(np.asarray(where)[..., None], other, x)


def poison(probe: Probe, draw: Draw) -> float:
    """Draw the magnitude of the numbers at hidden positions, such that nothing overflows."""
    return draw.choose((1e3, 1.0, 30.0) if probe.precision in ("float64", "float32") else (4.0,))


def output_unchanged(
    before: Annotated[Array, "B L D"],
    after: Annotated[Array, "B L D"],
    rows: Annotated[Array, "B L"],
    *,
    what: str,
) -> None:
    """Demand bit-exact outputs (B, L, D) at the positions `rows` (B, L), which are numbers."""
    # Two answers of one backend may both be NaN, and show no dependence.
    holds(not np.isnan(as_floats(before)[rows]).any(), "The output contains NaN.", actual=before)
    equal(after[rows], before[rows], what=f"output {what}")


def depends_on_visible_positions(
    draw: Draw, case: LayerCall, before: Annotated[Array, "B L D"]
) -> None:
    """Demand that the output `before` (B, L, D) depends on the positions that may be attended to.

    The position of each sample that sees most is observed while the others change, and one that
    depends on them is enough: no constant output does, and no copy of the input. A position alone
    has nothing to depend on. In float32 the weight of the others may be lost in rounding, so the
    position changes with them; in half precision a narrow norm may round all to the same, and the
    output only has to vary.
    """
    if case.probe.precision in HALF_PRECISIONS:
        holds(len(np.unique(as_floats(before)[case.rows])) > 1, "The output is one constant.")
        return
    itself = np.eye(case.x.shape[1], dtype=bool)
    others = np.where(case.rows[..., None], case.keep & ~itself, False)
    samples, observed = np.arange(len(case.x)), others.sum(axis=-1).argmax(axis=-1)
    where = others[samples, observed]
    if not where.any():
        return
    if case.probe.precision != "float64":
        where = where | itself[observed]
    after = as_floats(case.but(x=replace_positions(draw, case.x, where, scale=2.0)).output())
    holds(
        (after != as_floats(before))[samples, observed][where.any(axis=-1)].any(),
        "The output does not depend on the positions that may be attended to "
        f"(observed at positions {observed.tolist()} of the samples).",
    )


def depends_on_memory(
    draw: Draw, case: LayerCall, row: int, *, steps: slice = slice(None), scale: float = 1.0
) -> None:
    """Demand that every step that may attend to `row` of the memory depends on it.

    A step counts where the reference changes by more than the rounding of the format.
    """
    where = np.zeros(case.decoder_memory.shape[:2], dtype=bool)
    where[:, row] = True
    other = case.but(memory=replace_positions(draw, case.decoder_memory, where, scale=scale))
    before, after = case.output(), other.output()
    expected = case.source_keep[..., row] & case.rows & _distinguishable(case, other)
    constant = expected & ~(as_floats(after) != as_floats(before)).any(axis=-1)
    holds(
        not constant[:, steps].any(),
        f"The output does not depend on row {row} of the memory; number of steps that may attend "
        f"to it: {int(constant[:, steps].sum())}.",
    )


def _distinguishable(case: LayerCall, other: LayerCall) -> Array:
    """Return the positions (B, T) where the answers of the reference differ beyond rounding."""
    first, second = (as_floats(one.probe.expected(*one.inputs).output) for one in (case, other))
    tolerances = [
        error_bound(one.probe, one.inputs, answer)
        for one, answer in ((case, first), (other, second))
    ]
    distinct: Array = np.asarray(np.abs(first - second).max(axis=-1) > sum(tolerances))
    return distinct


def gradient_reach(
    draw: Draw, case: LayerCall, row: int, number: int = 0
) -> Annotated[Array, "B L"]:
    """Return where the output at `row` has a gradient to the input `number`, as (B, L)."""
    cotangent = np.zeros(case.x.shape)
    cotangent[:, row] = draw.floats(len(case.x), case.x.shape[-1])
    source = case.inputs[number]
    assert isinstance(source, np.ndarray)
    gradient = case.probe.vjp(case.inputs, cotangent)
    pulled = gradient_to(gradient, number, f"input number {number}", source.shape)
    reached: Array = np.asarray((pulled != 0.0).any(axis=-1))
    return reached
