"""Tolerances: the error that correct code can make, from its arithmetic and its inputs."""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, TypeGuard

import numpy as np

from attentest.harness.arithmetic import arithmetic, unrounded
from attentest.harness.subject import Answer, Probe
from attentest.harness.wrong_scores import (
    SIGNS,
    of_rounded_logarithms,
    of_rounded_slopes,
    size_of_logarithms,
    with_columns_off,
)
from attentest_spec import Choices
from attentest_spec.components import inside
from attentest_spec.contract import Input
from attentest_spec.parameters import first_position, learned_positions, shapes
from attentest_spec.positional_encoding import table
from attentest_spec.precision import epsilon, least
from attentest_spec.rotary import magnitude
from attentest_spec.setting import Array, Floats, Setting

PERTURBATION = 2.0**-24
"""Relative change that measures amplification: far above float64's rounding, far below 1."""


_PERTURBED = 1.0 + PERTURBATION * SIGNS


def angle_epsilon(precision: str, choices: Choices, choice: str = "position_arithmetic") -> float:
    """Return the epsilon of the arithmetic that sines and cosines are computed in.

    `choice` names it. A table for half precision is computed in single precision at least. One that
    is declared as single stays as rounded as it was built, whatever precision it is moved to.
    """
    single = epsilon("float32")
    return single if choices[choice] == "float32" else min(epsilon(precision), single)


def turned_size(
    precision: str, choices: Choices, places: Annotated[Array, "*rows"], factor: float
) -> Annotated[Floats, "*rows"]:
    """Return by how many units of `precision` the numbers at `places` (..) may be wrong.

    The rows that are turned by rotary positions are sums of two products, times `factor`. Their
    angles are wrong by a few units of their own arithmetic for each position, and where the table
    is in single precision the products may be, too.
    """
    coarse = angle_epsilon(precision, choices, "rotary_arithmetic") / epsilon(precision)
    return 1.5 * max(factor, 1.0) * (1.0 + coarse * (1.0 + as_floats(places)))


def terms(probe: Probe, inputs: tuple[Input, ...]) -> int:
    """Return how many roundings add up along the longest path through the component."""
    width, inner, layers = probe.sizes.d_model, probe.sizes.d_ff, probe.sizes.layers
    length = max(
        (max(one.shape[1:] or (1,)) for one in inputs if isinstance(one, np.ndarray)), default=1
    )
    attention = 2 * width + length
    whole = {
        "attention": width + length,
        "multi_head_attention": width + attention,
        "feed_forward": width + inner,
        "mixture_of_experts": 2 * width + inner + probe.sizes.experts,
        "encoder_layer": attention + inner + 4 * width,
        "encoder": layers * (attention + inner + 4 * width),
        "decoder_layer": 2 * attention + inner + 6 * width,
        "decoder": layers * (2 * attention + inner + 6 * width),
        "model": layers * (3 * attention + 2 * inner + 10 * width),
        "decoding": layers * (3 * attention + 2 * inner + 10 * width),
        "causal_layer": attention + 2 * inner + 6 * width,
        "language_model": layers * (attention + 2 * inner + 6 * width),
        "loss": length + max((one.size for one in inputs if _is_whole(one)), default=1),
    }
    return whole.get(probe.component.removeprefix("cached_"), width)


def _is_whole(value: Input) -> TypeGuard[Array]:
    """Say whether `value` is an array of whole numbers, such as tokens."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "i"


def perturbations(
    probe: Probe, inputs: tuple[Input, ...], *, seeds: Iterable[int]
) -> Iterator[tuple[Probe, tuple[Input, ...]]]:
    """Yield the probe and its inputs with the last digits of all numbers changed, once per seed."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        other = copy(probe)
        other.parameters = {name: _perturb(one, rng) for name, one in probe.parameters.items()}
        yield other, tuple(_perturb(value, rng) for value in inputs)


def _perturb(value: Any, rng: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    return value * _PERTURBED[rng.integers(2, size=value.shape)]


Pick = Callable[[Answer], Array | None]
"""Takes the array that is compared out of an answer."""

_SAMPLES = 4
"""Number of samples of an error whose largest is taken."""

_FAR = 1000.0
"""Times that the largest of several samples of an error is less than one of them."""

SAFETY = 8.0
"""Constant in front of every tolerance: few roundings per term, and a sampled amplification."""


def as_floats(values: Any) -> Annotated[Floats, "*shape"]:
    """Return `values` as float64, in their shape."""
    return np.asarray(values).astype(np.float64)


@dataclass(frozen=True)
class _Case:
    """A call under choices, and what is taken out of its answer."""

    probe: Probe
    inputs: tuple[Input, ...]
    method: str
    pick: Pick | None
    choices: Choices
    samples: int = _SAMPLES

    @property
    def seeds(self) -> range:
        """The seeds of the samples of an error: in one alone, some may cancel by luck."""
        return range(1, 1 + self.samples)

    @cached_property
    def expected(self) -> Floats:
        """The output of the reference."""
        return self.of(self.probe, self.inputs)

    def of(self, probe: Probe, inputs: tuple[Input, ...]) -> Floats:
        """Return what the reference computes of changed parameters and inputs."""
        return _expected(probe, inputs, self.method, self.pick, self.choices)

    def under(self, choices: Choices) -> "_Case":
        """Return the same call under other choices."""
        return replace(self, choices=choices)


def error_bound(
    probe: Probe,
    inputs: tuple[Input, ...],
    expected: Annotated[Floats, "*shape"],
    *,
    method: str = "",
    pick: Pick | None = None,
    choices: Choices | None = None,
    difference: float = np.inf,
    rounded: bool = True,
    samples: int = _SAMPLES,
) -> float:
    """Return the error that correct code may make in `expected`, an answer of any shape.

    Where it is not `rounded`, of code that rounds inside exactly as the reference does. Its parts
    cost evaluations of the reference, one for each of the `samples`; the rest is left out once
    twice the `difference` is less.
    """
    unit = rounding(probe.precision, terms(probe, inputs))
    bound = unit * largest(expected) + least(probe.precision)
    case = _Case(probe, inputs, method, pick, choices or probe.subject.choices, samples)
    further = (_of_single_precision, _of_logarithms, _of_losses, _of_angles, _of_turns, _of_slopes)
    for part in (_of_last_digits, *(further if rounded else ())):
        if 2 * difference <= bound:
            break  # the share of the tolerance that is reported is at most one half
        bound += part(case)
    return bound


def fits(
    probe: Probe,
    *inputs: Input,
    actual: Annotated[Array, "*found"],
    choices: Choices,
    method: str = "",
    rows: Annotated[Array, "*rows"] | None = None,
) -> bool:
    """Return whether `actual` is what the reference computes under `choices`, up to rounding.

    `actual` may have any shape, and differs where it is not that of the reference; `rows` selects
    positions on its first axes.
    """
    expected = _expected(probe, inputs, method, None, choices)
    if actual.shape != expected.shape:
        return False
    found, wanted = _select(actual, expected, rows)
    difference = distance(found, wanted)
    of_the_call = partial(error_bound, probe, inputs, expected, method=method, choices=choices)
    bound = partial(of_the_call, difference=difference)
    return difference <= _FAR * bound(samples=1) and difference <= bound()


def distance(actual: Annotated[Array, "*#shape"], expected: Annotated[Array, "*#shape"]) -> float:
    """Return the largest difference; infinite where one of the two is not a number.

    The two have shapes that broadcast to each other.
    """
    found, wanted = as_floats(actual), as_floats(expected)
    if found.size == 0:
        return 0.0
    with np.errstate(invalid="ignore"):
        difference = np.abs(found - wanted)
    if not np.isnan(worst := float(difference.max())):  # the usual case, as infinities are rare
        return worst
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    return float(np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference)).max())


def largest(values: Annotated[Array, "*shape"] | float) -> float:
    """Return the largest finite magnitude in `values`, of any shape; 0 for none."""
    sizes = np.abs(as_floats(values))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def _expected(
    probe: Probe,
    inputs: tuple[Input, ...],
    method: str,
    pick: Pick | None,
    choices: Choices | None,
) -> Floats:
    answer = probe.expected(*inputs, method=method, choices=choices)
    return as_floats(answer.output if pick is None else pick(answer))


def rounding(precision: str, terms: int) -> float:
    """Return the relative error that `terms` roundings of `precision` add up to."""
    return SAFETY * epsilon(precision) / 2 * float(np.sqrt(terms))


def _of_single_precision(case: _Case) -> float:
    """Return the error that the roundings of a part in float32 may make to a float64 output.

    The error that they make in the reference is one sample of it: its distance from the reference
    without them. Inputs and parameters that differ in their 24th digit give others. What a norm
    returns is itself in float32, as the weights of experts are, so that the roundings are relative
    to the output, whatever the samples.
    """
    probe, inputs = case.probe, case.inputs
    if arithmetic(probe, case.choices) == probe.precision:
        return 0.0
    exact = case.under(unrounded(case.choices))
    least = 0.0
    if probe.component in ("rms_norm", "mixture_of_experts"):
        least = rounding("float32", 1) * largest(exact.expected)
    with np.errstate(invalid="ignore"):
        return least + SAFETY * max(
            largest(  # of finite numbers: a score beyond float32 is no infinite tolerance
                case.of(other, moved) - exact.of(other, moved)
            )
            for other, moved in perturbations(probe, inputs, seeds=range(2 * case.samples))
        )


def _of_logarithms(case: _Case) -> float:
    """Return the error that weights of attention as exponentials of logarithms may make.

    Source may compute exp(s - log(sum(exp(s)))), or merge blocks of keys by such logarithms. The
    rounding of the logarithm is relative to it, and moves all weights of the row by one factor,
    however steep the softmax is. The reference is given weights that are wrong by that much.
    """
    if "attention" not in inside(case.probe.component):
        return 0.0
    unit = SAFETY * epsilon(arithmetic(case.probe, case.choices)) / 2
    other, worst = copy(case.probe), 0.0
    with np.errstate(invalid="ignore"):
        for seed in case.seeds:
            other.normalise = partial(
                of_rounded_logarithms, unit, SAFETY, np.random.default_rng(seed)
            )
            worst = max(worst, largest(case.of(other, case.inputs) - case.expected))
    return worst


def _of_losses(case: _Case) -> float:
    """Return the error that the rounding of logarithms may make to a loss."""
    if case.probe.component != "loss":
        return 0.0
    output, target = (np.asarray(one) for one in case.inputs)
    unit = epsilon(arithmetic(case.probe, case.choices))
    return unit * size_of_logarithms(case.choices, output, target)


def _of_angles(case: _Case) -> float:
    """Return the error that the rounding of angles may make to the output.

    Source and reference may compute the frequencies by a power or by an exponential of a logarithm:
    each rounding is relative, so that the angle is wrong by a few units times the position, and a
    sine by no more than its angle. The reference is given tables that are wrong by that much.
    """
    probe, inputs, chosen = case.probe, case.inputs, case.choices
    if "positional_encoding" not in inside(probe.component) or not _has_waves(chosen):
        return 0.0
    length = max(
        one.shape[-1 if _is_whole(one) else 1] for one in inputs if isinstance(one, np.ndarray)
    )
    if (given := _given_positions(probe, inputs)) is not None:
        length = max(length, int(given.max()) + 1)
    place = first_position(chosen) + np.arange(length, dtype=np.float64)
    unit = SAFETY * angle_epsilon(probe.precision, chosen) / 2
    exact = table(Setting(choices=chosen), length, probe.sizes.d_model)
    learned = chosen.but(positional_encoding="learned", position_offset="none")
    names = shapes(probe.component, probe.sizes, learned).keys() - probe.parameters.keys()
    rowwise, worst = case.under(learned), 0.0
    for seed in case.seeds:
        signs = SIGNS[np.random.default_rng(seed).integers(2, size=exact.shape)]
        other = copy(probe)
        rows = exact + unit * place[:, None] * signs
        other.parameters = {**probe.parameters, **dict.fromkeys(names, rows)}
        worst = max(worst, largest(rowwise.of(other, inputs) - case.expected))
    return worst


def _of_slopes(case: _Case) -> float:
    """Return the error that slopes in single precision may make to the output of attention.

    They are constants, which most code keeps in float32: of powers of two alone none is rounded.
    """
    probe, kind = case.probe, case.choices.relative_bias
    if "multi_head_attention" not in inside(probe.component) or not kind.startswith("alibi"):
        return 0.0
    unit = epsilon("float32") / 2
    other, worst = copy(probe), 0.0
    for seed in case.seeds:
        given = Setting(probe.sizes, case.choices)
        other.normalise = partial(of_rounded_slopes, given, unit, np.random.default_rng(seed))
        worst = max(worst, largest(case.of(other, case.inputs) - case.expected))
    return 2.0 * worst


def _of_turns(case: _Case) -> float:
    """Return the error that the rounding of angles may make to what rotary positions turn."""
    probe, inputs, chosen = case.probe, case.inputs, case.choices
    if "multi_head_attention" in inside(probe.component) and chosen.attention_rotary != "none":
        return _of_displaced_turns(case)
    if probe.component != "rotary":
        return 0.0
    x, positions = as_floats(inputs[0]), inputs[1] if len(inputs) > 1 else None
    places = np.arange(x.shape[2]) if positions is None else np.asarray(positions)
    factor = magnitude(probe.sizes, chosen)
    size = turned_size(probe.precision, chosen, places, factor)
    return rounding(probe.precision, 1) * largest(size) * largest(x)


def _of_displaced_turns(case: _Case) -> float:
    """Return the error that wrong angles inside attention may make to its output.

    Angles are wrong by a few units of their arithmetic for each position, and sines and cosines
    by as many units: the reference is given positions that are wrong by that much, which turns a
    pair, and columns of queries and keys that are wrong by as many units, which stretches it.
    """
    probe = case.probe
    unit = SAFETY * angle_epsilon(probe.precision, case.choices, "rotary_arithmetic") / 2
    other, worst = copy(probe), 0.0
    for seed in case.seeds:
        rng = np.random.default_rng(seed)
        other.displace = lambda places, rng=rng: (
            places + unit * (1.0 + places) * SIGNS[rng.integers(2, size=np.shape(places))]
        )
        other.parameters = with_columns_off(probe.parameters, unit, rng)
        worst = max(worst, largest(case.of(other, case.inputs) - case.expected))
    return worst


def _given_positions(probe: Probe, inputs: tuple[Input, ...]) -> Array | None:
    """Return the positions (B, T) that a decoder-only model is given, None for none."""
    if not probe.component.endswith("language_model") or len(inputs) < 3 or inputs[2] is None:
        return None
    return np.asarray(inputs[2])


def _has_waves(choices: Choices) -> bool:
    return choices.positional_encoding != "none" and not learned_positions(choices)


def _of_last_digits(case: _Case) -> float:
    """Return the error that the rounding of inputs and parameters may make to the output."""
    probe, inputs, worst = case.probe, case.inputs, 0.0
    for other, moved in perturbations(probe, inputs, seeds=case.seeds):
        change = np.abs(case.of(other, moved) - case.expected)
        worst = max(worst, float(change[np.isfinite(change)].max(initial=0.0)) / PERTURBATION)
    return rounding(probe.precision, terms(probe, inputs)) * worst


def _select(actual: Array, expected: Array, rows: Array | None) -> tuple[Floats, Floats]:
    found, wanted = as_floats(actual), as_floats(expected)
    return (found, wanted) if rows is None else (found[rows], wanted[rows])
