"""Diagnosis: names the options and catalogued faults that give the same wrong answers.

The steps of failing examples are repeated on variants of correct code: with another option of a
choice, with a fault of the catalogue injected, with two of these where none fits alone. Those that
give the same wrong answers are named, the ones that reproduce most other answers first. Where no
answer can be compared (a draw of dropout, a refusal, an inventory), the faults that break the same
clause with the same message are named instead.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import islice
from math import inf
from typing import Any

import numpy as np

from attentest.analysis.diagnosis.difference import difference
from attentest.analysis.diagnosis.evidence import Example, examine
from attentest.analysis.diagnosis.explain import SECONDS, Match, explain
from attentest.analysis.diagnosis.ranking import Ranking
from attentest.analysis.diagnosis.variants import (
    Variant,
    correct_backends,
    in_other_models,
    pairs,
    singles,
    variant_named,
)
from attentest.harness.subject import Step, Subject
from attentest.harness.tolerances import as_floats
from attentest.results.verdict import LikelyCause
from attentest_spec import CHOICES, Backend, Unsupported
from attentest_spec.clauses import clauses

MOST = 3
"""The largest number of likely causes that are named."""

EXAMPLES = 6
"""The number of examples that are examined."""

KEYS = 2
"""The number of them to be explained: the first may be too simple to separate causes."""

SIMILAR = 0.5
"""The similarity from which on two messages, leaving out numbers, count as the same."""

_NAMES = re.compile(r"\([^)]*\)|\S*[\d._]\S*")
"""Numbers, shapes and dotted names: what differs between two pieces of code with one mistake."""

_SIZES = re.compile(r"\b(?!(?:found|expected|by) )([a-z]\w*) (-?)\d+\b(?!\.\d)")
"""Sizes in a message, by their names; another sign is another refusal, and of a float no matter.

A number that was found or expected is a float that may happen to be whole.
"""

_NUMBERS = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")

Complain = Callable[[Backend], str]
"""Judges the same clause on another backend, and returns the message of the verdict."""


@dataclass(frozen=True)
class BrokenClause:
    """A clause that a backend breaks: traces of examples, a failing one first, and the message.

    Where its causes are not searched `in_full`, only those of other clauses and the faults of this
    one are tried.
    """

    subject: Subject
    component: str
    clause: str
    traces: Iterable[Sequence[Step]]
    message: str
    suspects: Sequence[tuple[str, ...]] = ()
    in_full: bool = True

    def suspected(self) -> Iterator[Variant]:
        """Yield the variants that explained other clauses of this backend."""
        variants = (variant_named(names, self.subject.choices) for names in self.suspects)
        return (variant for variant in variants if variant.reaches(self.component))

    def singles(self, *, weak: bool = False) -> Iterator[Variant]:
        """Yield the variants that may explain it alone, the likeliest first.

        A refusal that is missing or worded in another way is explained by faults in refusals, and
        an inventory, the outcome of a `weak` step, by faults in state and mode. The faults of the
        clause itself may explain both.
        """
        found = singles(self.subject.choices, self.component, self.clause)
        if not self.in_full:
            return (one for one in found if any(f.clause == self.clause for f in one.faults))
        if clauses()[self.clause].kind == "errors":
            kinds: tuple[str, ...] = ("loud", "wording")
        elif weak:
            kinds = ("state", "mode")
        else:
            return found
        return (
            one
            for one in found
            if any(f.kind in kinds or f.clause == self.clause for f in one.faults)
        )

    def is_about_what_is_declared(self, variant: Variant) -> bool:
        """Say whether no fault of a variant is in a choice that is not declared.

        Such a choice is measured, and wrong numbers show no option: the fault would be one by
        chance, as a declared epsilon where the code has one of its own.
        """
        chosen = (clauses()[one.clause].choice for one in variant.faults)
        return all(
            not one or CHOICES[one].paper is not None or one in self.subject.declared
            for one in chosen
        )


def diagnose(broken: BrokenClause, complain: Complain) -> tuple[LikelyCause, ...]:
    """Return the likely causes of a broken clause, the likeliest first."""
    examples = _Examples(broken)
    causes = _reproducing(broken, examples)
    if any(key.numeric for key in examples.keys) or (
        causes and not all(key.weak for key in examples.keys)
    ):
        return causes  # any two wrong numbers are worded alike: that would say nothing
    similar = _with_similar_message(broken, complain)
    named = {one.names for one in causes}
    return (*causes, *(one for one in similar if one.names not in named))[:MOST]


class _Examples:
    """The examples of a broken clause: each is drawn and examined where it is asked for."""

    def __init__(self, broken: BrokenClause) -> None:
        self.correct = correct_backends(broken.subject.choices)
        self._examined: list[Example] = []
        subject = broken.subject
        self._rest = (
            examine(steps, subject.backend, self.correct, subject.precision)
            for steps in islice(broken.traces, EXAMPLES)
        )

    def __iter__(self) -> Iterator[Example]:
        """Yield all examples, those that are known first."""
        number = 0
        while True:
            if number == len(self._examined):
                further = next(self._rest, None)
                if further is None:
                    return
                self._examined.append(further)
            yield self._examined[number]
            number += 1

    @property
    def keys(self) -> Iterator[Example]:
        """The examples to be explained."""
        return islice((one for one in self if one.key is not None), KEYS)


def _reproducing(broken: BrokenClause, examples: _Examples) -> tuple[LikelyCause, ...]:
    """Return the variants that give the wrong answers of an example, the best ones first."""
    likely: dict[tuple[str, ...], Variant] = {}
    for key_step in (_KeyStep(key, examples.correct) for key in examples.keys):
        for stage in _stages(broken, key_step):
            likely = {variant.names: variant for variant in stage} | likely
            if likely and (ranking := Ranking(list(likely.values()), list(examples))).perfect:
                return ranking.likely_causes(MOST)
        if not likely and not key_step.is_weak:
            return ()  # a cause gives every wrong number, and none gives these
    return ranking.likely_causes(MOST) if likely else ()


def _stages(broken: BrokenClause, key_step: "_KeyStep") -> Iterator[list[Variant]]:
    """Yield the variants that give the wrong answer: suspects, then all, then pairs."""
    yield key_step.fitting(broken.suspected())
    weak = key_step.is_weak
    yield key_step.fitting(broken.singles(weak=weak))
    yield key_step.fitting(in_other_models(broken.singles(weak=weak)))
    if not broken.in_full:
        return
    active = [one for one in key_step.active() if broken.is_about_what_is_declared(one)]
    yield key_step.fitting(pairs(active, broken.component))


class _KeyStep:
    """The key step of one example, and the answers of the variants that were tried on it."""

    def __init__(self, example: Example, correct: Sequence[Backend]) -> None:
        self._example = example
        self._correct = correct
        self._key = example.key
        mark = example.marks[example.key or 0]
        assert mark is not None
        self._mark = mark
        self._answers: dict[str, tuple[Variant, Any]] = {}

    @property
    def is_weak(self) -> bool:
        """Whether its outcome is an inventory."""
        return self._example.weak

    def fitting(self, variants: Iterator[Variant]) -> list[Variant]:
        """Return those of `variants` that give the wrong answer of the key step."""
        given = {
            " + ".join(variant.names): variant
            for variant in variants
            if not (variant.options and self._is_empty)
        }
        matches = explain(
            self._mark.outcome,
            {name: lambda name=name: self._answer(name, given[name]) for name in given},  # type: ignore[misc]
            self._mark.tolerance,
            measure=_reproduced,
        )
        names = {match.name for match in matches}
        return [variant for name, variant in given.items() if name in names]

    @cached_property
    def _is_empty(self) -> bool:
        """Whether no number was given where a refusal is right: any option may end in NaN there."""
        outcome = self._mark.outcome
        answer = outcome[0] if isinstance(outcome, tuple) else outcome
        if not isinstance(answer, np.ndarray) or np.isfinite(as_floats(answer)).any():
            return False
        right = (self._example.at_key(backend) for backend in self._correct)
        return any(isinstance(one, Exception) for one in right)

    def _answer(self, name: str, variant: Variant) -> Any:
        answer = self._example.at_key(variant.backend())
        self._answers[name] = (variant, answer)
        return answer

    def active(self) -> list[Variant]:
        """Return the variants tried that changed the answer: others add nothing to a pair."""
        right = [self._example.at_key(backend) for backend in self._correct]
        return [
            variant
            for variant, answer in self._answers.values()
            if min(difference(one, answer) for one in right) > self._mark.tolerance
        ]


def _reproduced(outcome: Any, answer: Any) -> float:
    return inf if isinstance(answer, Unsupported) else difference(outcome, answer)


def _with_similar_message(broken: BrokenClause, complain: Complain) -> tuple[LikelyCause, ...]:
    """Return the clause's own faults that break it with the same message, closest numbers first."""
    own = [one for one in broken.singles() if one.faults and one.faults[0].clause == broken.clause]
    messages = {variant.names: complain(variant.backend()) for variant in own}
    ranks = {
        names: (_similarity(broken.message, text), _nearness(broken.message, text))
        for names, text in messages.items()
    }
    ranked = sorted(own, key=lambda variant: ranks[variant.names], reverse=True)
    return tuple(
        LikelyCause("complaint", variant.names, variant.text)
        for variant in ranked[:MOST]
        if ranks[variant.names][0] >= SIMILAR
        and _same_sizes(broken.message, messages[variant.names])
    )


def _same_sizes(one: str, other: str) -> bool:
    """Say whether two messages are about the same sizes: "heads -1" is not "heads 3"."""
    return set(_SIZES.findall(one)) == set(_SIZES.findall(other))


def _similarity(one: str, other: str) -> float:
    """Return how similar two messages are, from 0 to 1, leaving out numbers and names."""
    first, second = (_NAMES.sub("#", text) for text in (one, other))
    return round(SequenceMatcher(None, first, second).ratio(), 2)


def _nearness(one: str, other: str) -> float:
    """Return how near the numbers of two messages are, 0 where they are the same."""
    first, second = ([float(number) for number in _NUMBERS.findall(text)] for text in (one, other))
    return -sum(abs(a - b) / (abs(a) + abs(b) or 1.0) for a, b in zip(first, second, strict=False))


__all__ = ["SECONDS", "BrokenClause", "Match", "diagnose", "explain"]
