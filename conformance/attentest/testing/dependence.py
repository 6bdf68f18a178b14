"""What a position of a layer or stack can see, told by what changes when something else does."""

import numpy as np

from attentest.harness.subject import Probe
from attentest.harness.tolerances import as_floats, error_bound
from attentest.testing.assertions import equal, holds
from attentest.testing.common import HALVES
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradient_to
from attentest.testing.layer_calls import Case
from attentest_spec.setting import Array, Floats


def changed(draw: Draw, x: Floats, where: Array | np.bool_, scale: float = 1.0) -> Floats:
    """Return x with other numbers at the positions (B, L) named by `where`."""
    other = draw.floats(*x.shape, scale=scale)
    return np.where(np.asarray(where)[..., None], other, x)


def poison(probe: Probe, draw: Draw) -> float:
    """Draw the size of what stands at hidden positions, such that nothing overflows there."""
    return draw.choose((1e3, 1.0, 30.0) if probe.precision in ("float64", "float32") else (4.0,))


def unmoved(before: Array, after: Array, rows: Array, *, what: str) -> None:
    """Demand the same output to the last bit at the positions (B, L) named by `rows`."""
    equal(after[rows], before[rows], what=f"output {what}")


def answers(draw: Draw, case: Case, before: Array) -> None:
    """Demand a real answer: where a position may attend to others, it heeds a change of them.

    Asked is the position of each sample that sees most, and one that heeds is enough: no constant
    output does, and no copy of the input. A position alone has nothing to heed. In float32 the
    weight of the others may be lost in rounding, so the position changes with them; in half
    precision a narrow norm may round all to the same, and no more than a varied output is asked.
    """
    if case.probe.precision in HALVES:
        holds(len(np.unique(as_floats(before)[case.rows])) > 1, "The output is one constant.")
        return
    itself = np.eye(case.x.shape[1], dtype=bool)
    others = np.where(case.rows[..., None], case.keep & ~itself, False)
    samples, asked = np.arange(len(case.x)), others.sum(axis=-1).argmax(axis=-1)
    where = others[samples, asked]
    if not where.any():
        return
    if case.probe.precision != "float64":
        where = where | itself[asked]
    after = as_floats(case.but(x=changed(draw, case.x, where, scale=2.0)).output())
    holds(
        (after != as_floats(before))[samples, asked][where.any(axis=-1)].any(),
        "What the positions that see most may attend to is changed, and their output stays as "
        f"it is (positions {asked.tolist()} of the samples).",
    )


def heeds_the_memory(
    draw: Draw, case: Case, row: int, *, steps: slice = slice(None), scale: float = 1.0
) -> None:
    """Demand that a change to `row` of the memory moves the output of every step that may read it.

    A step counts where the change exceeds the rounding of the format.
    """
    where = np.zeros(case.read.shape[:2], dtype=bool)
    where[:, row] = True
    other = case.but(memory=changed(draw, case.read, where, scale=scale))
    before, after = case.output(), other.output()
    asked = case.source_keep[..., row] & case.rows & _tells(case, other)
    deaf = asked & ~(as_floats(after) != as_floats(before)).any(axis=-1)
    holds(
        not deaf[:, steps].any(),
        f"Row {row} of the memory is changed, and the output of {int(deaf[:, steps].sum())} steps "
        "that may read it stays as it is.",
    )


def _tells(case: Case, other: Case) -> Array:
    """Say for every position (B, T) whether the oracle's answers differ by more than rounding."""
    first, second = (as_floats(one.probe.expected(*one.inputs).output) for one in (case, other))
    bounds = [
        error_bound(one.probe, one.inputs, answer)
        for one, answer in ((case, first), (other, second))
    ]
    told: Array = np.asarray(np.abs(first - second).max(axis=-1) > sum(bounds))
    return told


def reach(draw: Draw, case: Case, row: int, number: int = 0) -> Array:
    """Return which positions (B, L) of the input `number` the output at `row` has a gradient to."""
    cotangent = np.zeros(case.x.shape)
    cotangent[:, row] = draw.floats(len(case.x), case.x.shape[-1])
    source = case.inputs[number]
    assert isinstance(source, np.ndarray)
    gradient = case.probe.vjp(case.inputs, cotangent)
    pulled = gradient_to(gradient, number, f"input number {number}", source.shape)
    reached: Array = np.asarray((pulled != 0.0).any(axis=-1))
    return reached
