"""Says in words of the formula what an operation computed instead of the reference's value."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from attentest.analysis.lines.formula import Mistake, Step
from attentest.analysis.lines.matching import Matcher
from attentest_spec.attention import softmax
from attentest_spec.setting import Array

_DEPTH = 12
"""The number of steps that one operation may compute at once, as a fused kernel does."""


@dataclass(frozen=True)
class Explanation:
    """The step that is wrong, what it is in the formula, and what was computed instead.

    `exact` says that this gives the very numbers of the code.
    """

    step: Step
    expected: str
    computed: str
    exact: bool


def explain(
    actual: Array, step: Step, covered: set[int], given: set[int], matcher: Matcher
) -> Explanation:
    """Explain the wrong value `actual` in the place of `step`, as the axes of that lie.

    `covered` are the steps that the code computes rightly, `given` those that the value was made
    from.
    """
    chain = _chain(step, covered)

    def fits(value: Array | None) -> bool:
        return value is not None and (
            matcher.close(actual, value, filled=step.filled) or matcher.close(actual, value)
        )

    for wrong, mistake in _single(chain):
        value = _computed(wrong, mistake, step, chain)
        if fits(value):
            return Explanation(wrong, wrong.text, mistake.text, exact=True)
    for leaf, other, user in _exchanged(chain, given, matcher):
        value = _evaluated(step, {leaf.number: other.value}, chain)
        if fits(value):
            text = f"{user.text}, with {_shown(other)} in the place of {_shown(leaf)}"
            return Explanation(user, user.text, text, exact=True)
    return Explanation(step, step.text, _what_is_known(actual, step.value, matcher), exact=False)


def _chain(step: Step, covered: set[int]) -> list[Step]:
    """Return the steps that a result in the place of `step` is made of, in order."""
    found: dict[int, Step] = {}
    todo = [step]
    while todo and len(found) < _DEPTH:
        one = todo.pop(0)
        if one.number not in found and not one.is_leaf:
            found[one.number] = one
            todo.extend(other for other in one.inputs if other.number not in covered)
    return [found[number] for number in sorted(found)]


def _single(chain: list[Step]) -> Iterator[tuple[Step, Mistake]]:
    for step in chain:
        for mistake in step.without():
            yield step, mistake


def _exchanged(
    chain: list[Step], given: set[int], matcher: Matcher
) -> Iterator[tuple[Step, Step, Step]]:
    """Yield an input of the chain, another value in its place, and the step that uses it."""
    numbers = {step.number for step in chain}
    others = [one for one in matcher.steps if one.number in given]
    for user in chain:
        for leaf in user.inputs:
            if leaf.number in numbers:
                continue
            for other in others:
                if other is not leaf and other.value.shape == leaf.value.shape:
                    yield leaf, other, user


def _computed(wrong: Step, mistake: Mistake, step: Step, chain: list[Step]) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(mistake.compute(*(one.value for one in wrong.inputs)))
    except (ValueError, IndexError, TypeError):
        return None
    if value.shape != wrong.value.shape:
        return None
    return _evaluated(step, {wrong.number: value}, chain)


def _evaluated(step: Step, put: Mapping[int, Array], chain: list[Step]) -> Array | None:
    """Return the value of `step` with the values `put` in the place of others."""
    values = dict(put)
    for one in chain:
        changed = any(other.number in values for other in one.inputs)
        if one.number in put or not changed or one.compute is None:
            continue
        inputs = (values.get(other.number, other.value) for other in one.inputs)
        try:
            with np.errstate(all="ignore"):
                values[one.number] = np.asarray(one.compute(*inputs))
        except (ValueError, IndexError, TypeError):
            return None
    return values.get(step.number)


def _shown(step: Step) -> str:
    return step.name if step.is_leaf else f"the {step.name.rpartition('.')[2]}"


def explain_extra(actual: Array, given: Array, step: Step, matcher: Matcher) -> Explanation:
    """Explain a result that should have been the right value `given`, which is that of `step`."""
    said = f"{_shown(step)}, unchanged"
    for name, function in _FUNCTIONS.items() if given.dtype.kind == "f" else ():
        with np.errstate(all="ignore"):
            value = function(given)
        if value is not None and matcher.close(actual, value):
            return Explanation(step, said, name.format(_shown(step)), exact=True)
    factor = _factor(actual, given, matcher)
    if factor is not None:
        return Explanation(step, said, f"{_shown(step)} times {factor:.6g}", exact=True)
    text = _what_is_known(actual, given, matcher)
    return Explanation(step, said, text, exact=False)


_FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "{} squared": np.square,
    "minus {}": np.negative,
    "the absolute value of {}": np.abs,
    "relu of {}": lambda x: np.maximum(x, 0),
    "tanh of {}": np.tanh,
    "sigmoid of {}": lambda x: 1 / (1 + np.exp(-x)),
    "exp of {}": np.exp,
    "softmax of {}": softmax,
    "{} in the reverse order of the positions": lambda x: np.flip(x, min(1, x.ndim - 1)),
}


def _what_is_known(actual: Array, value: Array, matcher: Matcher) -> str:
    """Say what can be said of a value that nothing explains."""
    if actual.shape != value.shape or actual.dtype.kind != "f":
        return "something else"
    factor = _factor(actual, value, matcher)
    if factor is not None:
        return f"{factor:.6g} times that"
    if matcher.close(np.sort(actual, axis=None), np.sort(value, axis=None)):
        return "the same numbers in another order"
    shift = (actual - value)[np.isfinite(actual) & np.isfinite(value)]
    if shift.size == actual.size and np.ptp(shift) <= matcher.tolerance * np.abs(value).max():
        return f"that plus {shift.flat[0]:.6g}"
    worst = np.abs(shift).max(initial=0.0)
    return f"something else: it differs by up to {worst:.3g}" if worst else "something else"


def _factor(one: Array, value: Array, matcher: Matcher) -> float | None:
    """Return the constant that `one` is a multiple of `value` by; None where there is none."""
    finite = np.isfinite(value) & np.isfinite(one)
    if not finite.all() or not value.any() or value.dtype.kind != "f":
        return None
    factor = float((one * value).sum() / np.square(value).sum())
    return factor if matcher.close(one, factor * value) and factor != 1.0 else None
