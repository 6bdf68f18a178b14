"""Checks of an optimiser of several arrays: groups, absent gradients and a saved state."""

from dataclasses import dataclass, replace

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_optimiser.test_adam import Run, draw_run, has_moved, require_epsilon
from attentest.testing.assertions import equal, finite, holds, near, same_shape
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import WIDE, SizesInUse, at_sizes_in_use
from attentest_spec import Sizes
from attentest_spec.setting import Array, Floats

COMPONENT = "grouped_optimiser"
_NEVER = 0


@dataclass(frozen=True)
class Groups:
    """A run (parameters, gradients, rates) of arrays, and the update after which it is saved."""

    run: Run
    sizes: Array
    kinds: Array
    present: Array
    saved: int = _NEVER

    @property
    def inputs(self) -> tuple[Floats, Floats, Floats, Array, Array, Array, int]:
        """The inputs of the contract."""
        return (*self.run, self.sizes, self.kinds, self.present, self.saved)

    def array(self, number: int) -> slice:
        """Return the columns of an array."""
        end = int(self.sizes[: number + 1].sum())
        return slice(end - int(self.sizes[number]), end)


def draw_groups(draw: Draw, updates: int = 5) -> Groups:
    """Draw weights, a bias and a norm in any order, which have gradients in all updates."""
    kinds = draw.rng.permutation([0, 1, 2, 0])
    sizes = np.array([draw.integer(1, 3) for _ in kinds])
    run = draw_run(draw, updates, int(sizes.sum()))
    return Groups(run, sizes, kinds, np.ones((updates, len(kinds)), dtype=bool))


def without(groups: Groups, number: int, updates: list[int]) -> Groups:
    """Return the run in which an array has no gradient in these updates."""
    present = groups.present.copy()
    present[updates, number] = False
    return replace(groups, present=present)


def build(subject: Subject, draw: Draw) -> Probe:
    """Build the optimiser with a drawn weight decay."""
    decay = draw.choose((0.1, 0.3, 0.5))
    return subject.part(COMPONENT, subject.limits.fitted(Sizes(weight_decay=decay)))


def run(probe: Probe, groups: Groups) -> Floats:
    """Return the parameters (T, N) after each update, all of them finite."""
    output = probe.output(*groups.inputs)
    same_shape(output, groups.run[1].shape, what="parameters")
    finite(output, what="output")
    return as_floats(output)


def formula(probe: Probe, groups: Groups) -> Floats:
    """Demand the parameters of the reference after each update, and return them."""
    actual = run(probe, groups)
    expected = as_floats(probe.expected(*groups.inputs).output)
    start, gradients, rates = groups.run
    size = float(np.abs(start).max()) + float(rates.sum())
    near(probe.subject, actual, expected, terms=64 * len(gradients), size=size)
    return actual


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    half = size.width // 2
    present = np.ones((3, 2), dtype=bool)
    present[1, 0] = False
    run = draw_run(draw, 3, 2 * half)
    formula(build(subject, draw), Groups(run, np.array([half, half]), np.array([0, 1]), present))


@check("optimiser.grouped-formula", in_use=at_sizes_in_use(_formula_in_use, WIDE))
def test_grouped_formula(subject: Subject, draw: Draw) -> None:
    groups = draw_groups(draw)
    probe = build(subject, draw)
    formula(probe, groups)
    formula(probe, without(groups, 0, [0, 3]))
    formula(probe, without(groups, 1, [0, 1]))


@check("optimiser.decay-groups")
def test_decay_groups(subject: Subject, draw: Draw) -> None:
    if subject.choices.weight_decay == "none":
        raise Absent("no weight decays")
    groups = draw_groups(draw)
    start, gradients, rates = groups.run
    far: Run = (20.0 * start, gradients, 5.0 * rates)
    probe = build(subject, draw)
    actual = run(probe, replace(groups, run=far))
    declared = subject.choices.decay_groups
    for option in ("all", "weights"):
        other = subject.choices.but(decay_groups=option)
        wished = as_floats(probe.expected(*replace(groups, run=far).inputs, choices=other).output)
        close = bool(np.allclose(actual, wished, rtol=1e-3, atol=1e-3))
        text = f"decay_groups is declared as {declared}; the numbers show {option}."
        holds(not close or option == declared, text, actual=actual)
    formula(probe, replace(groups, run=far))


@check("optimiser.absent-gradients")
def test_absent_gradients(subject: Subject, draw: Draw) -> None:
    whole = draw_groups(draw, updates=6)
    number = draw.integer(0, len(whole.sizes) - 1)
    missing = [2, 3]
    require_epsilon(subject)
    groups = without(whole, number, missing)
    probe = build(subject, draw)
    found = run(probe, groups)[:, groups.array(number)]
    for update in missing:
        what = "parameters of an array without a gradient in an update"
        equal(found[update], found[update - 1], what=what)
    text = "An array stays as it is in an update with a gradient."
    holds(has_moved(subject, found[3], found[4]), text, actual=found)
    formula(probe, groups)
    start, gradients, rates = groups.run
    large = gradients.copy()
    large[missing, groups.array(number)] = 1e6
    moved = run(probe, replace(groups, run=(start, large, rates)))
    equal(moved, run(probe, groups), what="parameters where numbers stand in for no gradient")


@check("optimiser.update-count")
def test_update_count(subject: Subject, draw: Draw) -> None:
    if subject.choices.bias_correction == "none":
        raise Absent("nothing is corrected")
    groups = without(draw_groups(draw), draw.integer(0, 3), [0, 1, draw.choose((2, 3))])
    probe = build(subject, draw)
    actual = run(probe, groups)
    declared = subject.choices.update_count
    for option in ("own", "all"):
        other = subject.choices.but(update_count=option)
        wished = as_floats(probe.expected(*groups.inputs, choices=other).output)
        close = bool(np.allclose(actual, wished, rtol=1e-4, atol=1e-4))
        text = f"update_count is declared as {declared}; the numbers show {option}."
        holds(not close or option == declared, text, actual=actual)
    formula(probe, groups)


@check("optimiser.restored-state")
def test_restored_state(subject: Subject, draw: Draw) -> None:
    groups = without(draw_groups(draw, updates=6), draw.integer(0, 3), [1])
    start, gradients, rates = groups.run
    groups = replace(groups, run=(10.0 * start, gradients, rates))
    probe = build(subject, draw)
    whole = formula(probe, groups)
    for saved in (draw.integer(2, 5), 1):
        actual = run(probe, replace(groups, saved=saved))
        equal(actual, whole, what=f"parameters of a run that is saved after update {saved}")
