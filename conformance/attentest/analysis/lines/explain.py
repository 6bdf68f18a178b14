"""Says in words of the formula what an operation computed instead of the reference's value."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from attentest.analysis.lines.arguments import Argument
from attentest.analysis.lines.formula import Formula, Mistake, Step, evaluated
from attentest.analysis.lines.matching import Matcher, visible
from attentest_spec.attention import softmax
from attentest_spec.setting import Array

_DEPTH = 12
"""The number of steps that one operation may compute at once, as a fused kernel does."""

_NEAR = 0.15
"""The difference from an option, as a part of the largest value, up to which it is near."""

UNEXPLAINED = ""
"""The text of a value that no known mistake gives."""

UNUSED = "the expected value, but no later line uses it"
"""The text of a right value that is computed for nothing."""

EXCHANGED = "query and key exchanged"
"""The text of scores whose rows belong to keys."""

_MULTIPLE = re.compile(r" times [-+.\de]+$")
_SIZE = re.compile(r", where [^,;]*? = [-+.\de]+")
_NUMBER = re.compile(r"(?<![\w.^/])[-+]?\d[\d.]*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Explanation:
    """The step that is wrong, what it is in the formula, and what was computed instead.

    `exact` says that this gives the very numbers of the code.
    """

    step: Step
    expected: str
    computed: str
    exact: bool

    def agrees(self, other: "Explanation") -> bool:
        """Say whether another example is explained alike; sizes may differ, other numbers not."""
        return (
            self.exact
            and other.exact
            and _SIZE.sub("", self.computed) == _SIZE.sub("", other.computed)
        )

    def as_far_as(self, other: "Explanation") -> "Explanation":
        """Return what holds for another example, too."""
        if self.agrees(other):
            return self
        of, of_other = (_MULTIPLE.sub("", one.computed) for one in (self, other))
        if of == of_other != self.computed:
            return replace(self, computed=f"a multiple of {of}")
        return self.vague

    @property
    def is_known(self) -> bool:
        """Whether it is a known mistake of the step."""
        return any(one.text == self.computed for one in self.step.mistakes)

    @property
    def vague(self) -> "Explanation":
        """The explanation without what was computed: it holds for one example alone."""
        return replace(self, computed=UNEXPLAINED, exact=False)

    @property
    def sizeless(self) -> "Explanation":
        """The explanation without the sizes of the example that it was made on."""
        expected, computed = (_SIZE.sub("", one) for one in (self.expected, self.computed))
        return replace(self, expected=expected, computed=computed)

    def on(self, formula: Formula) -> "Explanation":
        """Return the explanation with the sizes of the example that `formula` is of."""
        step = next((one for one in formula.steps if one.name == self.step.name), None)
        if step is None or _numberless(step.text) != _numberless(self.step.text):
            return self.sizeless
        pairs = [(self.step.text, step.text), (self.step.words, step.words)]
        pairs += [
            (one.text, other.text)
            for one, other in zip(self.step.without(), step.without(), strict=False)
            if _numberless(one.text) == _numberless(other.text)
        ]
        texts = dict(pairs)
        computed = texts.get(self.computed, _SIZE.sub("", self.computed))
        expected = texts.get(self.expected, self.expected)
        found = replace(self, expected=expected, computed=computed)
        return found.sizeless if _is_equal(computed, expected) else found


def _is_equal(computed: str, expected: str) -> bool:
    """Say whether two sizes that a mistake exchanged are one number in this example."""
    both = [_SIZE.findall(one) for one in (computed, expected)]
    named, values = ([[one.rpartition(" = ")[at] for one in of] for of in both] for at in (0, 2))
    return named[0] != named[1] and bool(values[0]) and values[0] == values[1]


def _numberless(text: str) -> str:
    return _NUMBER.sub("#", text)


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
        if fits(_computed(wrong, mistake, step, chain)):
            return Explanation(wrong, wrong.text, mistake.text, exact=True)
    for put, taken, needed, user in _exchanged(chain, given, matcher):
        if fits(evaluated(step, put, chain)):
            text = f"{user.text}, with {taken} in the place of {needed}"
            return Explanation(user, user.text, text, exact=True)
    known = _what_is_known(actual, step, matcher)
    return Explanation(step, step.text, known, exact=known != UNEXPLAINED)


def explain_undeclared(said: Explanation, actual: Array) -> Explanation:
    """Return what is `said` of an activation that is none of the options, where none is declared.

    The nearest option is named where it is near the value, which is `actual`.
    """
    step, any_option = said.step, "an activation of the specification"
    if step.name != "activated" or said.computed != UNEXPLAINED:
        return said
    options = [(step.text, step.value)] + [
        (one.text, np.asarray(one.compute(*(other.value for other in step.inputs))))
        for one in step.mistakes
    ]
    alike = [(text, value) for text, value in options if value.shape == actual.shape]
    apart = sorted((float(np.abs(value - actual).max()), text) for text, value in alike)
    is_near = bool(apart) and apart[0][0] < _NEAR * float(np.abs(actual).max())
    nearest = f", of which {apart[0][1]} is nearest" if is_near else ""
    return replace(said, expected=f"{any_option}{nearest}")


def explain_argument(argument: Argument, matcher: Matcher) -> Explanation:
    """Explain a call that was given another value of the formula than it needs."""
    user, taken, needed = argument.user, argument.taken, argument.needed
    if taken in needed.inputs:
        return explain_left_out(taken, needed, matcher)
    value = np.asarray(argument.computed)
    for mistake in user.mistakes:
        other = _computed(user, mistake, user, [user])
        if other is not None and matcher.close(value, other):
            return Explanation(user, user.text, mistake.text, exact=True)
    text = f"{user.words}, made from {taken.words}"
    return Explanation(user, f"made from {needed.words}", text, exact=True)


def explain_left_out(taken: Step, needed: Step, matcher: Matcher) -> Explanation:
    """Explain the value of `taken` in the place of `needed`."""
    if taken in needed.inputs and taken.value.shape == needed.value.shape:
        known = {one.number for one in needed.inputs}
        return explain(taken.value, needed, known, known, matcher)
    return Explanation(needed, needed.text, f"{taken.words}, unchanged", exact=True)


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
) -> Iterator[tuple[Mapping[int, Array], str, str, Step]]:
    """Yield other values for inputs of the chain, both in words, and the step that uses them."""
    others = [one for one in matcher.steps if one.number in given]
    for user in reversed(chain):
        for leaf in user.inputs:
            for other in others:
                if other is not leaf and other.value.shape == leaf.value.shape:
                    yield {leaf.number: other.value}, other.words, leaf.words, user
    parameters = {one.name: one for one in matcher.steps if one.is_leaf and "." in one.name}
    prefixes = dict.fromkeys(name.rpartition(".")[0] for name in parameters)
    for user in chain:
        owners = (one.name.rpartition(".")[0] for one in user.inputs if one.name in parameters)
        for own in dict.fromkeys(owners):
            for part in prefixes:
                if part != own and (put := _weights_of(part, own, parameters)):
                    yield put, f"the weights of {part}", f"those of {own}", user


def _weights_of(other: str, own: str, parameters: Mapping[str, Step]) -> dict[int, Array]:
    """Return the parameters under `other` as those under `own`, none unless all fit."""
    put = {}
    for name, leaf in parameters.items():
        part, _, last = name.rpartition(".")
        if part == own:
            step = parameters.get(f"{other}.{last}")
            if step is None or step.value.shape != leaf.value.shape:
                return {}
            put[leaf.number] = step.value
    return put


def _computed(wrong: Step, mistake: Mistake, step: Step, chain: list[Step]) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(mistake.compute(*(one.value for one in wrong.inputs)))
    except (ValueError, IndexError, TypeError):
        return None
    if value.shape != wrong.value.shape:
        return None
    return evaluated(step, {wrong.number: value}, chain)


def explain_extra(actual: Array, given: Array, step: Step, matcher: Matcher) -> Explanation:
    """Explain a result that should have been the right value `given`, which is that of `step`."""
    said = f"{step.words}, unchanged"
    functions = _FUNCTIONS if given.ndim > 1 else {**_FUNCTIONS, **_OF_ROWS}
    for name, function in functions.items() if given.dtype.kind == "f" else ():
        with np.errstate(all="ignore"):
            value = function(given)
        if value is not None and matcher.close(actual, value):
            return Explanation(step, said, name.format(step.words), exact=True)
    factor = _factor(actual, given, matcher)
    if factor is not None:
        return Explanation(step, said, f"{step.words} times {factor:.6g}", exact=True)
    added = _constant(actual, given, matcher)
    if added is not None:
        text = f"{step.words} {'plus' if added > 0 else 'minus'} {abs(added):.6g}"
        return Explanation(step, said, text, exact=True)
    if given.dtype.kind == "f" and matcher.close(*(np.sort(one, None) for one in (actual, given))):
        return Explanation(step, said, "the same numbers in another order", exact=True)
    return Explanation(step, said, UNEXPLAINED, exact=False)


_FUNCTIONS: Mapping[str, Callable[[Array], Array | None]] = {
    "{} squared": np.square,
    "minus {}": np.negative,
    "the absolute value of {}": np.abs,
    "relu of {}": lambda x: np.maximum(x, 0),
    "tanh of {}": np.tanh,
    "sigmoid of {}": lambda x: 1 / (1 + np.exp(-x)),
    "exp of {}": np.exp,
    "softmax of {}": softmax,
    "{} in the reverse order of the positions": lambda x: np.flip(x, 1) if x.ndim > 1 else None,
}
_OF_ROWS: Mapping[str, Callable[[Array], Array | None]] = {"{} in the reverse order": np.flip}


def _what_is_known(actual: Array, step: Step, matcher: Matcher) -> str:
    """Say what can be said of a value that nothing explains."""
    value = step.value
    if actual.dtype == value.dtype == bool and np.array_equal(actual, ~value):
        return "the mask turned around, True for False"
    if actual.shape != value.shape or actual.dtype.kind != "f":
        return UNEXPLAINED
    factor = _factor(actual, value, matcher)
    if factor is not None:
        return f"the expected value times {factor:.6g}"
    if matcher.close(np.sort(actual, axis=None), np.sort(value, axis=None)):
        return "the same numbers in another order"
    if step.filled:
        keep = visible(value)
        both = matcher.close(actual[keep], value[keep])
        return "other numbers where the mask forbids" if both else UNEXPLAINED
    shift = (actual - value)[np.isfinite(actual) & np.isfinite(value)]
    if shift.size == actual.size and np.ptp(shift) <= matcher.tolerance * np.abs(value).max():
        return f"the expected value plus {shift.flat[0]:.6g}"
    return UNEXPLAINED


def _constant(one: Array, value: Array, matcher: Matcher) -> float | None:
    """Return the constant that `one` is more than `value` by; None where there is none."""
    if value.dtype.kind != "f" or not (np.isfinite(value) & np.isfinite(one)).all():
        return None
    constant = float((one - value).mean())
    return constant if constant and matcher.close(one, value + constant) else None


def _factor(one: Array, value: Array, matcher: Matcher) -> float | None:
    """Return the constant that `one` is a multiple of `value` by; None where there is none."""
    finite = np.isfinite(value) & np.isfinite(one)
    if not finite.all() or not value.any() or value.dtype.kind != "f":
        return None
    factor = float((one * value).sum() / np.square(value).sum())
    return factor if matcher.close(one, factor * value) and factor != 1.0 else None
