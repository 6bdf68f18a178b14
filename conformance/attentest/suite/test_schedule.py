"""Checks of the chapter `schedule`; a step is that of an update, counted from 1."""

from collections.abc import Sequence
from functools import partial
from math import inf

import numpy as np

from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.testing.assertions import equal, finite, holds, near, same_shape
from attentest.testing.draw import Draw
from attentest.testing.refusal import explains_refusal, refuses
from attentest.testing.sizes_in_use import WIDE, SizesInUse, at_sizes_in_use
from attentest_spec import Sizes
from attentest_spec.setting import Array, Floats

COMPONENT = "learning_rate"
ENDING = ("linear", "cosine")
"""The schedules that have a last step."""

TERMS = 64
"""The roundings of a rate: powers and products, and logarithms where they are used instead."""


def draw_sizes(draw: Draw, *, low: int = 2, high: int = 40, gap: int = 4) -> Sizes:
    """Draw a width, a warm-up of `low` to `high` steps, a factor, and a last step far enough."""
    warmup = draw.integer(low, high)
    wanted = Sizes(
        d_model=draw.choose((6, 16, 64, 512)),
        heads=1,
        warmup=warmup,
        total_steps=warmup + gap * draw.integer(2, 9),
        factor=draw.choose((1.0, 0.5, 2.0, 1e-3)),
    )
    return draw.subject.limits.fitted(wanted)


def build(subject: Subject, sizes: Sizes) -> Probe:
    """Build the schedule at `sizes`."""
    return subject.part(COMPONENT, sizes)


def ends(subject: Subject) -> bool:
    """Say whether the declared schedule has a last step."""
    return subject.choices.schedule in ENDING


def update_of(subject: Subject, step: int) -> int:
    """Return the number of the update that has the rate of `step` of the schedule."""
    return step + (subject.choices.first_step == "zero")


def rate(probe: Probe, step: int) -> float:
    """Return the rate of an update."""
    output = probe.output(step)
    same_shape(output, (), what="learning rate")
    return float(as_floats(output))


def rates(probe: Probe, steps: Sequence[int]) -> Floats:
    """Return the rates (N,) of several updates, each of them finite."""
    found = np.array([rate(probe, step) for step in steps])
    finite(found, what=f"rate of one of the steps {list(steps)}")
    return found


def formula_at(probe: Probe, steps: Sequence[int]) -> None:
    """Demand the rates of the reference, each in its own magnitude."""
    for step in steps:
        expected = as_floats(probe.expected(step).output)
        found = np.asarray(rate(probe, step))
        what = f"learning rate of step {step}"
        near(probe.subject, found, expected, what=what, terms=TERMS, size=_size(probe, expected))


def _size(probe: Probe, expected: Array) -> float:
    """Return the size of what is rounded: a schedule that ends is a difference from its peak."""
    return probe.sizes.factor if ends(probe.subject) else float(as_floats(expected))


def proportional(subject: Subject, sizes: Sizes, other: Sizes, steps: Sequence[int]) -> Floats:
    """Return by how much the rates of `steps` are larger at `other` sizes, where they are not 0."""
    one, two = (rates(build(subject, each), steps) for each in (sizes, other))
    later = one[update_of(subject, sizes.warmup) <= np.array(steps)]
    holds(bool((later > 0).all()), "A rate before the last step is not above 0.", actual=one)
    equal(two == 0, one == 0, what="places of rates that are 0")
    ratio: Floats = two[one > 0] / one[one > 0]
    return ratio


def steps_of(draw: Draw, sizes: Sizes) -> list[int]:
    """Draw steps on both sides of the peak, those next to it included."""
    warmup, last = sizes.warmup, sizes.total_steps
    after = draw.integer(warmup + 1, last - 1)
    return [1, draw.integer(1, warmup), warmup - 1 or 1, warmup, warmup + 1, after, last - 1]


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    sizes = subject.limits.fitted(Sizes(d_model=size.width, heads=1))
    probe = build(subject, sizes)
    formula_at(probe, [1, 2, 4000, 4001, 50_000, 99_999])


@check("schedule.formula", in_use=at_sizes_in_use(_formula_in_use, WIDE))
def test_formula(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, high=draw.choose((40, 500)))
    formula_at(build(subject, sizes), steps_of(draw, sizes))


@check("schedule.shape")
def test_shape(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe = build(subject, sizes)
    after = sizes.warmup + (sizes.total_steps - sizes.warmup) // 2
    steps = [update_of(subject, one) for one in (sizes.warmup, after, sizes.total_steps - 1)]
    found = rates(probe, steps)
    expected = np.array([float(probe.expected(one).output) for one in steps])
    holds(bool(found[0] > 0), f"The rate at the end of the warm-up is {found[0]:g}.")
    shares, wanted = found[1:] / found[0], expected[1:] / expected[0]
    near(subject, shares, wanted, what="rate as a share of its peak", terms=TERMS, size=1.0)


@check("schedule.first-step")
def test_first_step(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, low=3)
    probe = build(subject, sizes)
    found = rates(probe, [1, 2, 3])
    first = float(found[0])
    if subject.choices.first_step == "one":
        holds(first > 0, f"The rate of the first update is {first:g}, which changes nothing.")
    else:
        holds(first == 0, f"The first update is declared to have no rate, and has {first:g}.")
    formula_at(probe, [1, 2, 3])


@check("schedule.warm-up-linear")
def test_warm_up_linear(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, low=3, high=draw.choose((12, 60)))
    last = update_of(subject, sizes.warmup)
    found = rates(build(subject, sizes), range(1, last + 1))
    grown = np.diff(found)
    size = float(found[-1])
    holds(bool((grown > 0).all()), "The rate does not grow during the warm-up.", actual=found)
    even = np.full_like(grown, size / sizes.warmup)
    near(subject, grown, even, what="growth of the rate", terms=TERMS, size=size)


@check("schedule.peak")
def test_peak(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, low=3)
    probe = build(subject, sizes)
    top = update_of(subject, sizes.warmup)
    found = rates(probe, range(1, update_of(subject, sizes.total_steps)))
    best = int(found.argmax()) + 1
    text = f"The rate is the largest at update {best}, and the warm-up ends at update {top}."
    holds(best == top, text, actual=found)
    constant = subject.choices.schedule == "constant"
    lone = found[top - 2] < found[top - 1] and (constant or found[top] < found[top - 1])
    holds(bool(lone), f"The rates around update {top} do not have their peak there.", actual=found)
    formula_at(probe, [top])


@check("schedule.decay")
def test_decay(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    first, last = update_of(subject, sizes.warmup), update_of(subject, sizes.total_steps)
    found = rates(build(subject, sizes), range(first, last))
    fallen = -np.diff(found)
    if subject.choices.schedule == "constant":
        near(subject, found, np.full_like(found, found[0]), what="rate after the warm-up")
        return
    held = int((fallen <= 0).sum())
    text = f"After the warm-up the rate does not fall in {held} of {len(fallen)} steps."
    holds(held == 0, text, actual=found)


@check("schedule.end")
def test_end(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe = build(subject, sizes)
    last = update_of(subject, sizes.total_steps)
    before, end = rates(probe, [last - 1, last])
    if ends(subject):
        near(subject, np.asarray(end), np.asarray(0.0), what="last rate", size=sizes.factor)
        holds(before > 0, f"The rate is {before:g} one step before the last one.")
        return
    later = rates(probe, [last, 10 * last, 1000 * last])
    holds(bool((later > 0).all()), "The rate is not above 0 at late steps.", actual=later)
    formula_at(probe, [last, 10 * last])


@check("schedule.factor")
def test_factor(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    other = subject.limits.fitted(sizes.but(factor=draw.choose((3.0, 0.1, 1e-4)) * sizes.factor))
    if other == sizes:
        raise Absent(f"the factor of {subject.name} is always {sizes.factor:g}")
    ratio = proportional(subject, sizes, other, steps_of(draw, sizes))
    wanted = np.full_like(ratio, other.factor / sizes.factor)
    near(subject, ratio, wanted, what="share of rates under another factor", terms=TERMS)


@check("schedule.width")
def test_width(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    other = subject.limits.fitted(sizes.but(d_model=4 * sizes.d_model))
    if other == sizes:
        raise Absent(f"the width of {subject.name} is always {sizes.d_model}")
    ratio = proportional(subject, sizes, other, steps_of(draw, sizes))
    wanted = np.full_like(ratio, 0.5 if subject.choices.schedule == "noam" else 1.0)
    near(subject, ratio, wanted, what="share of rates at four times the width", terms=TERMS)


@check("schedule.warm-up-length")
def test_warm_up_length(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    sizes = subject.limits.fitted(sizes.but(total_steps=10 * sizes.warmup))
    other = subject.limits.fitted(sizes.but(warmup=4 * sizes.warmup))
    if other == sizes:
        raise Absent(f"the warm-up of {subject.name} is always {sizes.warmup}")
    first = [update_of(subject, 1)]
    one, two = (rates(build(subject, each), first) for each in (sizes, other))
    holds(bool(one[0] > 0), "The rate of the first step is 0.", actual=one)
    share = 1 / 8 if subject.choices.schedule == "noam" else 1 / 4
    near(subject, two, share * one, what="first rate of a longer warm-up", terms=TERMS)


@check("schedule.warm-up-of-one")
def test_warm_up_of_one(subject: Subject, draw: Draw) -> None:
    sizes = subject.limits.fitted(draw_sizes(draw).but(warmup=1))
    if sizes.warmup != 1:
        raise Absent(f"the warm-up of {subject.name} is always {sizes.warmup}")
    probe = build(subject, sizes)
    first = update_of(subject, 1)
    found = rates(probe, [first, first + 1, sizes.total_steps - 1])
    holds(bool(found[0] == found.max() > 0), "The first step has not the peak.", actual=found)
    formula_at(probe, [first, first + 1])


@check("schedule.any-order")
def test_any_order(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    steps = sorted({*steps_of(draw, sizes), 2})
    going_on = dict(zip(steps, rates(build(subject, sizes), steps), strict=True))
    holds(len(set(going_on.values())) > 1, "The rate is the same at every step.")
    probe = build(subject, sizes)
    for step in (*reversed(steps), *steps[::2], *steps[-1:]):
        found = rate(probe, step)
        text = f"The rate of step {step} is {found:.9g}, and {going_on[step]:.9g} when the steps"
        holds(found == going_on[step], f"{text} are asked for in another order.")


@check("schedule.own-settings")
def test_own_settings(subject: Subject, draw: Draw) -> None:
    sizes, others = draw_sizes(draw), draw_sizes(draw, low=50, high=90)
    probe = build(subject, sizes)
    steps = steps_of(draw, sizes)
    before = rates(probe, steps)
    holds(len(set(before)) > 1, "The rate is the same at every step.")
    formula_at(build(subject, others), [1, others.warmup, others.total_steps - 1])
    after = rates(probe, steps)
    text = "The rates of a schedule changed when another one was built and asked."
    holds(np.array_equal(before, after), text, actual=after, expected=before)


@check("schedule.full-precision")
def test_full_precision(subject: Subject, draw: Draw) -> None:
    wanted = Sizes(d_model=1024, heads=1, warmup=10_000, total_steps=10**6, factor=1e-3)
    probe = build(subject, subject.limits.fitted(wanted))
    start = draw.integer(3, 200)
    steps = [start, start + 1, start + 2]
    found = rates(probe, steps)
    text = "The rates of neighbouring steps of the warm-up do not differ."
    holds(len(set(found)) == len(steps), text, actual=found)
    formula_at(probe, steps)


@check("schedule.one-number")
def test_one_number(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe = build(subject, sizes)
    output = probe.output(draw.choose((sizes.warmup, 1, sizes.warmup + 1)))
    same_shape(output, (), what="learning rate")
    holds(
        output.dtype.kind in "fV", f"The learning rate is of type {output.dtype}, no real number."
    )
    finite(output, what="learning rate")


@check("schedule.large-steps")
def test_large_steps(subject: Subject, draw: Draw) -> None:
    wanted = Sizes(d_model=64, heads=1, warmup=50_000_000, total_steps=4 * 10**9)
    sizes = subject.limits.fitted(wanted)
    probe = build(subject, sizes)
    formula_at(probe, [100_000_001, 2**31 + draw.integer(1, 9), 3 * 10**9])
    found = rates(probe, [2**24 + 1, 2**24 + 2, 2**24 + 3])
    if sizes.warmup == wanted.warmup:
        text = "The rates of neighbouring steps beyond 16,777,216 do not differ."
        holds(subject.precision != "float64" or len(set(found)) == 3, text, actual=found)


@check("schedule.step-below-one", examples=2)
def test_step_below_one(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw_sizes(draw))
    rates(probe, [1, 2])
    try:
        found = float(as_floats(probe.output(0)))
    except BackendError:
        return
    holds(0 <= found < inf, f"The rate of step 0 is {found:g}, and the step was not refused.")


def _impossible(subject: Subject, draw: Draw) -> list[tuple[Sizes, int]]:
    """Return impossible sizes with the number that is wrong in each."""
    sizes = draw_sizes(draw, low=5)
    cases = [(sizes.but(warmup=-3), -3)]
    if ends(subject):
        cases.append((sizes.but(total_steps=sizes.warmup - 2), sizes.warmup - 2))
    settable = [one for one in cases if subject.limits.fitted(one[0]) == one[0]]
    if not settable:
        raise Absent(f"the sizes of the schedule of {subject.name} are fixed")
    return settable


@check("schedule.impossible-sizes", examples=2)
def test_impossible_sizes(subject: Subject, draw: Draw) -> None:
    for sizes, wrong in _impossible(subject, draw):
        refuses(subject, _doing(wrong), partial(_first_rate, subject, sizes))


@check("schedule.impossible-sizes-named", examples=2)
def test_impossible_sizes_named(subject: Subject, draw: Draw) -> None:
    for sizes, wrong in _impossible(subject, draw):
        built = partial(_first_rate, subject, sizes)
        explains_refusal(subject, _doing(wrong), built, naming=[wrong])


def _first_rate(subject: Subject, sizes: Sizes) -> Array:
    return build(subject, sizes).output(1)


def _doing(wrong: int) -> str:
    what = "a warm-up" if wrong < 0 else "a last step, before the end of the warm-up,"
    return f"building a schedule with {what} of {wrong}"
