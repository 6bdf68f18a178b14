"""Checks of the updates of Adam; a run begins without a state."""

from typing import Annotated

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, rounding
from attentest.judging.check import check
from attentest.testing.assertions import equal, finite, holds, near, same_shape
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest.testing.refusal import refuses
from attentest.testing.sizes_in_use import WIDE, SizesInUse, at_sizes_in_use
from attentest_spec import Sizes
from attentest_spec.precision import epsilon, smallest
from attentest_spec.setting import Array, Floats

COMPONENT = "optimiser"
Run = tuple[Floats, Floats, Floats]
"""Parameters (N,), gradients (T, N) and rates (T,)."""


def build(subject: Subject, draw: Draw) -> Probe:
    """Build the optimiser with a drawn weight decay."""
    decay = draw.choose((0.1, 0.01, 0.5))
    return subject.part(COMPONENT, subject.limits.fitted(Sizes(weight_decay=decay)))


def draw_run(draw: Draw, updates: int, count: int = 0, *, scale: float = 1.0) -> Run:
    """Draw a run: parameters and gradients away from zero, and rates that differ."""
    number = count or draw.integer(2, 6)
    rates = as_floats(0.01 * (1.0 + np.arange(updates) % 3) * draw.choose((1.0, 0.1)))
    return _away(draw, number), scale * _away(draw, updates, number), rates


def _away(draw: Draw, *shape: int) -> Floats:
    values = draw.floats(*shape)
    return as_floats(cast(values + np.where(values < 0, -0.25, 0.25), draw.subject.precision))


def run(probe: Probe, given: Run) -> Floats:
    """Return the parameters (T, N) after each update, all of them finite."""
    output = probe.output(*given)
    same_shape(output, given[1].shape, what="parameters")
    finite(output, what="output")
    return as_floats(output)


def moves(probe: Probe, given: Run) -> Floats:
    """Return how far each update has moved each parameter (T, N)."""
    found = np.diff(run(probe, given), axis=0, prepend=given[0][None])
    if not found.any() and given[0].any() and probe.precision in HALF_PRECISIONS:
        raise Absent(f"in {probe.precision} an update is below the rounding of the parameters")
    holds(bool(found.any()), "No update moves any parameter.", actual=found)
    return found


def formula(probe: Probe, given: Run) -> Floats:
    """Demand the parameters of the reference after each update, and return them."""
    actual = run(probe, given)
    expected = as_floats(probe.expected(*given).output)
    near(probe.subject, actual, expected, terms=_terms(given), size=_size(given))
    return actual


def has_moved(
    subject: Subject, start: Annotated[Floats, "n"], found: Annotated[Floats, "n"]
) -> bool:
    """Return whether all parameters (N,) differ, or are too coarse to differ after one update."""
    return subject.precision in HALF_PRECISIONS or bool((found != start).all())


def require_epsilon(subject: Subject) -> None:
    """End as absent where the declared epsilon is 0 in this precision: 0 / 0 is not a number."""
    declared = float(subject.choices.adam_epsilon)
    if 0 < declared < smallest(subject.precision):
        raise Absent(f"an epsilon of {declared:g} is 0 in {subject.precision}")


def moves_of_formula(probe: Probe, given: Run) -> None:
    """Demand the moves of the reference, each in its own magnitude: parameters start at zero."""
    start, gradients, rates = given
    still: Run = (np.zeros_like(start), gradients, rates)
    actual, expected = run(probe, still), as_floats(probe.expected(*still).output)
    for number in range(len(start)):
        what = f"course of parameter {number}"
        near(probe.subject, actual[:, number], expected[:, number], what=what, terms=_terms(still))


def _terms(given: Run) -> int:
    """Return how many roundings add up: a dozen in each update."""
    return 64 * len(given[2])


def _size(given: Run) -> float:
    return float(np.abs(given[0]).max()) + float(given[2].sum())


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    formula(build(subject, draw), draw_run(draw, 100, size.width))


@check("optimiser.formula", examples=6, in_use=at_sizes_in_use(_formula_in_use, WIDE))
def test_formula(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    formula(probe, draw_run(draw, draw.choose((7, 1))))
    moves_of_formula(probe, draw_run(draw, draw.choose((7, 100))))


@check("optimiser.first-update")
def test_first_update(subject: Subject, draw: Draw) -> None:
    chosen = subject.choices
    probe = build(subject, draw)
    start, gradients, rates = draw_run(draw, 1, scale=draw.choose((1.0, *_far(subject, (100.0,)))))
    given: Run = (np.zeros_like(start), gradients, rates)  # where no weight can decay
    moved = moves(probe, given)
    holds(bool((moved * gradients < 0).all()), "A parameter is moved up its gradient.")
    formula(probe, given)
    if chosen.bias_correction == "present" and chosen.adam_epsilon_place != "inside-root":
        epsilon = float(chosen.adam_epsilon) * 100
        if chosen.adam_epsilon_place == "uncorrected":  # it is added to a root that is not divided
            epsilon /= np.sqrt(1 - float(chosen.adam_beta2))
        size = np.abs(moved) / rates[0]
        if chosen.weight_decay == "decoupled-after":  # what was moved decays at once
            size /= 1 - rates[0] * probe.sizes.weight_decay
        tolerance = epsilon + rounding(probe.precision, 64)
        holds(bool((np.abs(size - 1) <= tolerance).all()), "The first update is not the rate long.")


@check("optimiser.beta1")
def test_beta1(subject: Subject, draw: Draw) -> None:
    start, gradients, rates = draw_run(draw, 6)
    gradients[1:] = 0.0
    moves_of_formula(build(subject, draw), (start, gradients, np.full_like(rates, 0.01)))


@check("optimiser.beta2")
def test_beta2(subject: Subject, draw: Draw) -> None:
    start, gradients, rates = draw_run(draw, 8)
    gradients[0] *= draw.choose(_far(subject, (100.0, 10.0)))
    moves_of_formula(build(subject, draw), (start, gradients, np.full_like(rates, 0.01)))


@check("optimiser.epsilon")
def test_epsilon(subject: Subject, draw: Draw) -> None:
    _tiny_gradients(subject, draw, (1.0, 0.1, 10.0))


@check("optimiser.epsilon-place")
def test_epsilon_place(subject: Subject, draw: Draw) -> None:
    _tiny_gradients(subject, draw, (1.0, 1e3, 3e4))


def _tiny_gradients(subject: Subject, draw: Draw, scales: tuple[float, ...]) -> None:
    """Demand the formula for gradients as small as the epsilon, times each of the `scales`."""
    epsilon = float(subject.choices.adam_epsilon) or 1e-9
    if subject.precision not in ("float64", "float32"):
        raise Absent(f"the squares of gradients as small as {epsilon:g} are 0 in half precision")
    for scale in scales:
        moves_of_formula(build(subject, draw), draw_run(draw, 3, scale=scale * epsilon))


@check("optimiser.bias-correction")
def test_bias_correction(subject: Subject, draw: Draw) -> None:
    start, gradients, rates = draw_run(draw, draw.choose((3, 12)))
    moves_of_formula(build(subject, draw), (start, gradients, np.full_like(rates, 0.01)))


@check("optimiser.weight-decay")
def test_weight_decay(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    start, gradients, rates = draw_run(draw, 4)
    formula(probe, (10.0 * start, gradients * draw.choose((1.0, 10.0)), 10.0 * rates))
    other = subject.part(COMPONENT, probe.sizes.but(weight_decay=0.25))
    formula(other, (10.0 * start, gradients, 10.0 * rates))


@check("optimiser.zero-rate")
def test_zero_rate(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    start, gradients, rates = draw_run(draw, 4)
    rates[:2] = 0.0
    found = formula(probe, (start, gradients, rates))
    equal(found[:2], np.stack([start, start]), what="parameters after updates at a rate of 0")
    text = "An update at a rate above 0 moves not all parameters."
    holds(has_moved(subject, start, found[2]), text, actual=found)


@check("optimiser.rate-of-the-step")
def test_rate_of_the_step(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    start, gradients, rates = draw_run(draw, 5)
    still = np.zeros_like(start)
    if subject.choices.weight_decay != "none":
        rates = rates * np.array([1.0, 3.0, 0.5, 2.0, 1.0])
        formula(probe, (start, gradients, rates))
        return
    once = moves(probe, (still, gradients, np.full_like(rates, 0.01)))
    share = draw.choose((np.array([1.0, 3.0, 0.5, 2.0, 1.0]), np.array([0.1, 1.0, 1.0, 4.0, 0.0])))
    found = moves(probe, (still, gradients, 0.01 * share))
    near(subject, found, once * share[:, None], what="moves at other rates", terms=64, size=0.1)


@check("optimiser.scale-invariance")
def test_scale_invariance(subject: Subject, draw: Draw) -> None:
    chosen = subject.choices
    if float(chosen.adam_epsilon) > 1e-6 or chosen.adam_epsilon_place == "inside-root":
        raise Absent("the declared epsilon is not small against gradients of about 1")
    probe = build(subject, draw)
    start, gradients, rates = draw_run(draw, 5)
    still = np.zeros_like(start)
    if chosen.weight_decay == "coupled":
        if subject.precision == "float16":
            raise Absent("moves too small for their own decay to count are 0 in float16")
        rates = 1e-6 * rates  # the decay of what is moved by these is no gradient
    scale = draw.choose(_far(subject, (64.0, 1024.0)))
    one, two = (moves(probe, (still, by * gradients, rates)) for by in (1.0, scale))
    size = float(np.abs(one).max()) * max(1.0, 1e3 * _relative(subject))
    near(subject, two, one, what="moves under larger gradients", terms=64 * 5, size=size)


def _far(subject: Subject, factors: tuple[float, ...]) -> tuple[float, ...]:
    """Return the factors of gradients; in float16 the squares of larger ones are infinite."""
    return (8.0,) if subject.precision == "float16" else factors


def _relative(subject: Subject) -> float:
    """Return the effect of the epsilon on a gradient of about 0.25, in units of the rounding."""
    decay = 1e-6 if subject.choices.weight_decay == "coupled" else 0.0
    effect = 40 * float(subject.choices.adam_epsilon) + decay
    return effect / rounding(subject.precision, 64 * 5)


@check("optimiser.own-means")
def test_own_means(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    start, gradients, rates = draw_run(draw, 4, 5)
    one = moves(probe, (start, gradients, rates))
    changed, other = draw.integer(0, 4), start.copy()
    gradients = gradients.copy()
    gradients[:, changed] *= -50.0
    other[changed] += 1.0
    two = moves(probe, (other, gradients, rates))
    rest = np.arange(5) != changed
    what = "moves of parameters whose gradients are the same"
    near(subject, two[:, rest], one[:, rest], what=what, terms=64, size=_size((start, one, rates)))
    order = draw.rng.permutation(5)
    given: Run = (start[order], gradients[:, order], rates)
    formula(probe, given)


@check("optimiser.zero-gradients")
def test_zero_gradients(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    start, gradients, rates = draw_run(draw, 4, 4)
    gradients[:, 1:3] = 0.0
    still = start.copy()
    still[1] = 0.0  # at zero no weight decays
    require_epsilon(subject)
    found = formula(probe, (still, gradients, rates))
    equal(found[:, 1], np.zeros(4), what="parameter at 0 without a gradient")
    if subject.choices.weight_decay == "none":
        equal(found[:, 2], np.full(4, still[2]), what="parameter without a gradient")
    text = "A parameter with a gradient does not move."
    holds(has_moved(subject, still[:1], found[0, :1]), text, actual=found)


@check("optimiser.steady-gradient", examples=1)
def test_steady_gradient(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    updates = 400
    _, gradients, _ = draw_run(draw, 1, 3)
    given: Run = (np.zeros(3), np.tile(gradients, (updates, 1)), np.full(updates, 1e-3))
    moved = moves(probe, given)
    formula(probe, given)
    if subject.choices.weight_decay == "none" and subject.precision not in HALF_PRECISIONS:
        long = np.abs(moved[-5:]) / 1e-3
        holds(bool((np.abs(long - 1) < 0.05).all()), "Late updates are not as long as the rate.")


@check("optimiser.earlier-updates")
def test_earlier_updates(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    start, gradients, rates = draw_run(draw, 6)
    whole = run(probe, (start, gradients, rates))
    stop = draw.integer(1, 5)
    early = run(probe, (start, gradients[:stop], rates[:stop]))
    equal(early, whole[:stop], what="parameters of a run that ends early")
    changed = np.concatenate([gradients[:stop], -3.0 * gradients[stop:]])
    equal(run(probe, (start, changed, rates))[:stop], early, what="beginning of another run")
    text = "The first update moves not all parameters."
    holds(has_moved(subject, start, whole[0]), text, actual=whole)


@check("optimiser.fresh-state")
def test_fresh_state(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    given = draw_run(draw, 4, 3)
    first = formula(probe, given)
    run(probe, draw_run(draw, 5, 3, scale=30.0))
    equal(run(probe, given), first, what="output of the same run again")
    formula(subject.part(COMPONENT, probe.sizes), given)


@check("optimiser.inputs-untouched")
def test_inputs_untouched(subject: Subject, draw: Draw) -> None:
    probe = build(subject, draw)
    given = draw_run(draw, 3)
    first = moves(probe, given)  # the probe compares the inputs with copies after every call
    equal(moves(probe, given), first, what="moves of the same run again")


@check("optimiser.extreme-gradients")
def test_extreme_gradients(subject: Subject, draw: Draw) -> None:
    if subject.precision != "float64":
        raise Absent(f"the squares of these gradients do not fit in {subject.precision}")
    probe = build(subject, draw)
    start, gradients, rates = draw_run(draw, 4, 4)
    sizes = np.array([1e-12, 1e12, 1.0, 1e6])
    moved = moves(probe, (np.zeros_like(start), gradients * sizes, rates))
    furthest = float(np.abs(moved / rates[:, None]).max())
    holds(furthest < 12, f"An update is {furthest:.3g} times as long as its rate.", actual=moved)
    formula(probe, (start, gradients * sizes, rates))


@check("optimiser.means-arithmetic")
def test_means_arithmetic(subject: Subject, draw: Draw) -> None:
    if subject.choices.means_arithmetic != "float32":
        raise Absent("the means are declared to be as precise as the parameters")
    sizes = subject.limits.fitted(Sizes(weight_decay=0.0))
    probe = subject.part(COMPONENT, sizes, precision="float16")
    _, gradients, _ = draw_run(draw, 4, 3)
    given = (np.zeros(3), 1e-4 * gradients, np.full(4, 0.01))
    half = tuple(cast(one, "float16") for one in given)
    actual = run(probe, half)  # type: ignore[arg-type]  # three of them
    expected = as_floats(probe.expected(*half).output)
    room = 16 * epsilon("float16") * 0.04
    off = float(np.abs(actual - expected).max())
    text = f"Parameters differ by {off:.3g} from those with means in float32; the tolerance is"
    holds(off <= room, f"{text} {room:.2g}.", actual=actual, expected=expected)


@check("optimiser.negative-decay", examples=1)
def test_negative_decay(subject: Subject, draw: Draw) -> None:
    if subject.choices.weight_decay == "none":
        raise Absent("no weight decays")
    given = draw_run(draw, 1)

    def answered() -> Array:
        return subject.part(COMPONENT, Sizes(weight_decay=-0.1)).output(*given)

    refuses(subject, "building an optimiser with a weight decay of -0.1", answered)
