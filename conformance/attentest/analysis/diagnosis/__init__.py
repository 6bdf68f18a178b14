"""Names the mistake: which options and catalogued faults answer as the backend does.

The steps of failing examples are asked again of variants of sound code: with another option of a
choice, with a fault of the catalogue planted, with two of these where none fits alone. Those that
give the same wrong answers are named, the ones that agree with most other answers first. Where no
answer can be compared (a draw of dropout, a refusal, an inventory), the faults that break the same
clause in the same words are named instead.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from math import inf
from typing import Any

from attentest.analysis.diagnosis.apart import apart
from attentest.analysis.diagnosis.evidence import Evidence, examined
from attentest.analysis.diagnosis.explain import SECONDS, Match, explain
from attentest.analysis.diagnosis.standing import Standing
from attentest.analysis.diagnosis.variants import Variant, abroad, named, pairs, singles, sound
from attentest.harness.subject import Step, Subject
from attentest.results.verdict import LikelyCause
from attentest_spec import Backend, Unsupported

MOST = 3
"""How many likely causes are named."""

EXAMPLES = 6
"""How many examples are looked at."""

KEYS = 2
"""How many of them are asked what reproduces their wrong answer: the first may be too plain."""

ALIKE = 0.5
"""How alike two complaints are, numbers apart, that are called the same."""

_NAMES = re.compile(r"\([^)]*\)|\S*[\d._]\S*")
"""Numbers, shapes and dotted names: what differs between two pieces of code with one mistake."""

_NUMBERS = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")

Complain = Callable[[Backend], str]
"""Judges the same clause on another backend and returns the message of the verdict."""


@dataclass(frozen=True)
class Case:
    """A clause that a backend breaks: traces of examples, a failing one first, and the finding."""

    subject: Subject
    component: str
    clause: str
    traces: Iterable[Sequence[Step]]
    found: str
    suspects: Sequence[tuple[str, ...]] = ()

    def suspected(self) -> Iterator[Variant]:
        """Yield what explained other clauses of this backend, and may explain this one."""
        variants = (named(names, self.subject.choices) for names in self.suspects)
        return (variant for variant in variants if variant.reaches(self.component))

    def singles(self) -> Iterator[Variant]:
        """Yield the variants that may explain it alone, the likeliest first."""
        return singles(self.subject.choices, self.component, self.clause)


def diagnose(case: Case, complain: Complain) -> tuple[LikelyCause, ...]:
    """Return what `case` looks like, the likeliest first."""
    correct = sound(case.subject.choices)
    examples = [
        examined(steps, case.subject.backend, correct, case.subject.precision)
        for steps in islice(case.traces, EXAMPLES)
    ]
    keys = [one for one in examples if one.key is not None][:KEYS]
    found = _reproducing(case, [_Trial(key, correct) for key in keys], examples)
    if found and not all(key.weak for key in keys):
        return found
    alike = _complaining(case, complain)
    named = {one.names for one in found}
    return (*found, *(one for one in alike if one.names not in named))[:MOST]


def _reproducing(
    case: Case, trials: Sequence["_Trial"], examples: Sequence[Evidence]
) -> tuple[LikelyCause, ...]:
    """Return the variants that give the wrong answers of an example, the best ones first."""
    likely: dict[tuple[str, ...], Variant] = {}
    for trial in trials:
        for stage in _stages(case, trial):
            likely = {variant.names: variant for variant in stage} | likely
            standing = Standing(list(likely.values()), examples)
            if standing.perfect:
                return standing.likely_causes(MOST)
    return standing.likely_causes(MOST) if likely else ()


def _stages(case: Case, trial: "_Trial") -> Iterator[list[Variant]]:
    """Yield the variants that give the wrong answer: suspects, then all, then pairs."""
    yield trial.fitting(case.suspected())
    yield trial.fitting(case.singles())
    yield trial.fitting(abroad(case.singles()))
    yield trial.fitting(pairs(trial.active(), case.component))


class _Trial:
    """Variants tried on the key step of one example, with what they answered."""

    def __init__(self, evidence: Evidence, correct: Sequence[Backend]) -> None:
        self._evidence = evidence
        self._correct = correct
        self._key = evidence.key
        mark = evidence.marks[evidence.key or 0]
        assert mark is not None
        self._mark = mark
        self._answers: dict[str, tuple[Variant, Any]] = {}

    def fitting(self, variants: Iterator[Variant]) -> list[Variant]:
        """Return those of `variants` that give the wrong answer of the key step."""
        given = {" + ".join(variant.names): variant for variant in variants}
        matches = explain(
            self._mark.outcome,
            {name: lambda name=name: self._answer(name, given[name]) for name in given},  # type: ignore[misc]
            self._mark.tolerance,
            measure=_reproduced,
        )
        found = {match.name for match in matches}
        return [variant for name, variant in given.items() if name in found]

    def _answer(self, name: str, variant: Variant) -> Any:
        answer = self._evidence.at_key(variant.backend())
        self._answers[name] = (variant, answer)
        return answer

    def active(self) -> list[Variant]:
        """Return the variants tried that changed the answer: others add nothing to a pair."""
        neutral = [self._evidence.at_key(backend) for backend in self._correct]
        return [
            variant
            for variant, answer in self._answers.values()
            if min(apart(one, answer) for one in neutral) > self._mark.tolerance
        ]


def _reproduced(outcome: Any, answer: Any) -> float:
    return inf if isinstance(answer, Unsupported) else apart(outcome, answer)


def _complaining(case: Case, complain: Complain) -> tuple[LikelyCause, ...]:
    """Return the clause's own faults that break it in the same words, closest numbers first."""
    own = [one for one in case.singles() if one.faults and one.faults[0].clause == case.clause]
    said = {variant.names: complain(variant.backend()) for variant in own}
    ranks = {
        names: (_alike(case.found, text), _near(case.found, text)) for names, text in said.items()
    }
    found = sorted(own, key=lambda variant: ranks[variant.names], reverse=True)
    return tuple(
        LikelyCause("complaint", variant.names, variant.text)
        for variant in found[:MOST]
        if ranks[variant.names][0] >= ALIKE
    )


def _alike(one: str, other: str) -> float:
    """Return how alike two sentences are, from 0 to 1, whatever numbers and names they hold."""
    first, second = (_NAMES.sub("#", text) for text in (one, other))
    return round(SequenceMatcher(None, first, second).ratio(), 2)


def _near(one: str, other: str) -> float:
    """Return how near the numbers of two sentences are, 0 where they are the same."""
    first, second = ([float(number) for number in _NUMBERS.findall(text)] for text in (one, other))
    return -sum(abs(a - b) / (abs(a) + abs(b) or 1.0) for a, b in zip(first, second, strict=False))


__all__ = ["SECONDS", "Case", "Match", "diagnose", "explain"]
