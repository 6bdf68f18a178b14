"""Calls of beam search, and the hypotheses that they find."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats
from attentest.suite.test_decoding.cases import RARE, Script, draw_script, draw_sizes, stops
from attentest.testing.assertions import equal, holds, same_shape
from attentest.testing.draw import Draw
from attentest_spec.decoding import Hypothesis, log_probabilities, next_scores, score
from attentest_spec.oracles import ORACLES
from attentest_spec.precision import epsilon
from attentest_spec.setting import Array, Floats, Setting


@dataclass(frozen=True)
class Found:
    """The answer of a beam search: tokens (B, N, M), and scores (B, N) where it returns them."""

    tokens: Array
    scores: Floats | None

    def known(self, subject: Subject) -> Floats:
        """Return the scores (B, N); absent where the backend returns none."""
        if self.scores is None:
            raise Absent(f"the beam_search of {subject.name} returns no scores")
        return self.scores


@dataclass(frozen=True)
class BeamCall:
    """One call of beam search."""

    subject: Subject
    script: Script
    beams: int

    @property
    def setting(self) -> Setting:
        """The setting of the reference."""
        return Setting(self.script.sizes, self.subject.choices)

    @property
    def inputs(self) -> tuple[Floats, Array, int, int]:
        """The inputs of the call."""
        return (*self.script.inputs(self.subject), self.beams)

    def but(self, **changes: Any) -> "BeamCall":
        """Return the call with another script or number of beams."""
        return replace(self, **changes)

    def probe(self) -> Probe:
        """Build the part."""
        return self.subject.part("beam_search", self.script.sizes)

    def found(self, probe: Probe | None = None) -> Found:
        """Call the backend, and demand the shapes of the contract."""
        tokens, scores = (probe or self.probe())(*self.inputs)
        shape = (len(self.script.begin), self.returned)
        same_shape(tokens, (*shape, self.script.length), what="hypotheses")
        if scores is not None:
            same_shape(scores, shape, what="scores")
        return Found(tokens, None if scores is None else as_floats(scores))

    @property
    def returned(self) -> int:
        """The number of hypotheses that the backend returns."""
        return min(self.beams, self.subject.limits.hypotheses or self.beams)

    def expected(self, **choices: str) -> Found:
        """Return the answer of the reference, under other choices where some are given."""
        whole = self.beam(**choices)
        assert whole.scores is not None
        return Found(whole.tokens[:, : self.returned], whole.scores[:, : self.returned])

    def beam(self, **choices: str) -> Found:
        """Return all hypotheses of the reference, those that the backend does not return too."""
        return self._search(**choices) if choices else self._declared

    @cached_property
    def _declared(self) -> Found:
        return self._search()

    def _search(self, **choices: str) -> Found:
        setting = replace(self.setting, choices=self.subject.choices.but(**choices))
        return Found(*ORACLES["beam_search"](setting, *self.inputs))

    def hypothesis(self, sequence: int, tokens: Array) -> Hypothesis:
        """Return the hypothesis with these tokens (M), up to their first new end token."""
        return self.hypotheses(sequence, [tokens])[0]

    def hypotheses(self, sequence: int, rows: Any) -> list[Hypothesis]:
        """Return the hypotheses with these rows of tokens (M), up to their first new end token."""
        scores = as_floats(self.script.scores(self.subject)[sequence])
        logs = log_probabilities(self.setting, scores)
        return [self._hypothesis(logs, [int(one) for one in row]) for row in rows]

    def _hypothesis(self, logs: Floats, tokens: list[int]) -> Hypothesis:
        given, end = self.script.given, self.script.sizes.end
        new = tokens[given:]
        finished = stops(self.subject) and end in new
        new = new[: new.index(end) + 1] if finished else new
        total = 0.0
        for number, token in enumerate(new):
            prefix = [*tokens[:given], *new[:number]]
            total += float(next_scores(self.setting, logs, prefix)[token])
        return Hypothesis(tuple(tokens[:given]), tuple(new), total, finished)

    def rescored(self, tokens: Array, **choices: str) -> Floats:
        """Return the scores (B, N) of hypotheses (B, N, M), computed from their tokens."""
        setting = replace(self.setting, choices=self.subject.choices.but(**choices))
        return np.array(
            [
                [score(setting, one) for one in self.hypotheses(sequence, rows)]
                for sequence, rows in enumerate(tokens)
            ]
        )

    @property
    def tolerance(self) -> float:
        """The error that rounding may make to a score: sums of logarithms, in its precision."""
        size = self.script.length * (np.abs(self.script.logits).max() + 20.0)
        return float(16 * epsilon(self.subject.precision) * size)


def draw_beam_call(
    subject: Subject,
    draw: Draw,
    *,
    beams: int = 0,
    ending: float = 0.5,
    ends_at: int = 1,
    alpha: float | None = None,
    wanted: Callable[[BeamCall], bool] = lambda case: True,
    preferred: Callable[[BeamCall], bool] = lambda case: True,
    **fixed: Any,
) -> BeamCall:
    """Draw a call without near ties, in which hypotheses end from the new token `ends_at` on.

    `ending` is how much likelier than other tokens the end is, in standard deviations; `wanted`
    says which calls are of use, and `preferred` which of them are better than others.
    """
    alpha = draw.choose((0.6, 0.0, 1.0)) if alpha is None else alpha
    sizes = draw_sizes(draw, vocabulary=draw.integer(6, 8), alpha=alpha)
    count = beams or draw.integer(1, 4)
    shape = {"batch": draw.choose((1, 2, 3)), "new": draw.integer(2, 5), **fixed}
    usable: list[tuple[BeamCall, Floats]] = []
    for _ in range(_TRIES):
        script = draw_script(draw, sizes=sizes, ends=[], **shape)
        logits = np.round(draw.rng.normal(scale=1.5, size=script.logits.shape), 3)
        logits[..., sizes.end] += 1.5 * ending
        logits[:, : script.given + ends_at - 2, :, sizes.end] = RARE
        logits[..., sizes.target_pad] = RARE - 1.0
        case = BeamCall(subject, script.but(logits=logits), count)
        if (noise := _noise(case, draw)) is None:
            continue
        if not preferred(case):  # most are not, and whether they are steady is seldom asked
            usable.append((case, noise))
        elif _is_steady(case, noise) and wanted(case):
            return case
    for case, noise in reversed(usable):
        if _is_steady(case, noise) and wanted(case):
            return case
    raise Absent(f"{subject.precision} has near ties in every search that was drawn")


_TRIES = 200


def is_steady(case: BeamCall, draw: Draw) -> bool:
    """Say whether small changes, drawn here, leave the tokens of the reference as they are."""
    noise = _noise(case, draw)
    return noise is not None and _is_steady(case, noise)


def _noise(case: BeamCall, draw: Draw) -> Floats | None:
    """Return small changes of the scores; None where two hypotheses are nearly tied as it is."""
    scores = case.beam().scores
    if scores is None or np.ptp(scores) == np.inf:
        return None
    gap = 8 * case.tolerance
    if case.beams > 1 and -np.diff(scores, axis=1).max() < gap:
        return None
    return draw.rng.uniform(-gap, gap, size=case.script.logits.shape)


def _is_steady(case: BeamCall, noise: Floats) -> bool:
    """Say whether small changes of the scores leave the tokens of the reference as they are.

    Every change is made in both directions: one of the two orders any tie the other way.
    """
    tokens = case.beam().tokens
    for change in (noise, -noise):
        moved = case.script.but(logits=case.script.logits + change)
        if not np.array_equal(case.but(script=moved).beam().tokens, tokens):
            return False
    return True


def every_sequence(case: BeamCall, words: list[int]) -> Iterator[list[int]]:
    """Yield all sequences of `words` that follow the given tokens of the first sequence."""
    given, end = [int(one) for one in case.script.begin[0]], case.script.sizes.end

    def longer(tokens: list[int]) -> Iterator[list[int]]:
        ended = stops(case.subject) and end in tokens[len(given) :]
        if ended or len(tokens) == case.script.length:
            yield tokens
            return
        for word in words:
            yield from longer([*tokens, word])

    yield from longer(given)


def optimum(case: BeamCall, words: list[int]) -> tuple[Hypothesis, float]:
    """Return the best of all sequences of `words`, and its score."""
    every = case.hypotheses(0, every_sequence(case, words))
    best = max(every, key=lambda one: score(case.setting, one))
    return best, score(case.setting, best)


def right(case: BeamCall) -> Found:
    """Demand the hypotheses and the scores of the reference, and return them."""
    return agrees(case, case.found(), case.expected())


def agrees(case: BeamCall, found: Found, expected: Found, *, what: str = "hypotheses") -> Found:
    """Demand the tokens of `expected`, and its scores up to rounding."""
    equal(found.tokens, expected.tokens, what=what)
    if found.scores is not None and expected.scores is not None:
        close(case, found.scores, expected.scores, "scores of the reference")
    return found


def close(case: BeamCall, found: Floats, expected: Floats, what: str) -> None:
    """Demand two scores that are equal up to rounding."""
    with np.errstate(invalid="ignore"):
        difference = float(np.abs(found - expected).max())
    holds(
        difference <= case.tolerance,
        f"The scores differ by {difference:.3g} from the {what}; the tolerance is "
        f"{case.tolerance:.2g}.",
        actual=found,
        expected=expected,
    )


def has_an_end(case: BeamCall) -> bool:
    """Say whether a hypothesis of the reference has ended."""
    tokens = case.expected().tokens[:, :, case.script.given :]
    return not stops(case.subject) or bool((tokens == case.script.sizes.end).any())
