"""Scripted models, calls that decode them, and the hypotheses of a beam."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats
from attentest.testing.assertions import equal, same_shape
from attentest.testing.draw import Draw
from attentest_spec import Choices, Sizes
from attentest_spec.decoding import Hypothesis, log_probabilities, next_scores, score
from attentest_spec.generator import normalised
from attentest_spec.oracles import ORACLES
from attentest_spec.precision import epsilon
from attentest_spec.setting import Array, Floats, Setting

NEVER = 10**6
"""The number of a new token that no sequence reaches."""

RARE = -9.0
"""The logit of a token that is never chosen; its probability is a number in half precision."""

_GAP = 0.7
"""The least difference of the logits in a row, so that no rounding changes their order."""


@dataclass(frozen=True)
class Script:
    """Logits (B, L, V, V) of a scripted model, and the setting in which it is decoded."""

    logits: Floats
    begin: Array
    length: int
    sizes: Sizes

    @property
    def given(self) -> int:
        """The number of given columns."""
        return int(self.begin.shape[1])

    def but(self, **changes: Any) -> "Script":
        """Return the script with other logits, given tokens, length or sizes."""
        return replace(self, **changes)

    def rows(self, rows: slice | list[int]) -> "Script":
        """Return the script of some sequences."""
        return replace(self, logits=self.logits[rows], begin=self.begin[rows])

    def scores(self, subject: Subject) -> Floats:
        """Return the scores (B, L, V, V) as the backend declares them, in its precision."""
        return cast(normalised(subject.choices.output, self.logits), subject.precision)

    def inputs(self, subject: Subject) -> tuple[Floats, Array, int]:
        """Return the inputs of greedy decoding."""
        return self.scores(subject), self.begin, self.length


def draw_sizes(draw: Draw, *, vocabulary: int = 0, **fixed: Any) -> Sizes:
    """Draw a vocabulary with three different ids for start, end and padding."""
    ids = vocabulary or draw.integer(6, 9)
    limits = draw.subject.limits
    sizes = Sizes(target_vocabulary=ids, source_vocabulary=ids, heads=1, layers=1, max_length=32)
    pad = limits.pad if limits.pad is not None else int(draw.rng.integers(ids))
    start, end = draw.rng.permutation([one for one in range(ids) if one != pad])[:2]
    named = {"source_pad": pad, "target_pad": pad, "start": int(start), "end": int(end)}
    return limits.fitted(sizes.but(**{**named, **fixed}))


def draw_script(
    draw: Draw,
    *,
    batch: int = 0,
    new: int = 0,
    given: int = 1,
    ends: list[int] | None = None,
    sizes: Sizes | None = None,
) -> Script:
    """Draw a scripted model whose sequences end with their new token number `ends`, from 1 on.

    Each has an end of its own by default, or none. Only the pad is never the best token.
    """
    sizes = sizes or draw_sizes(draw)
    samples, new = batch or draw.batch(), new or draw.integer(1, 5)
    count, length = sizes.target_vocabulary, given + new
    ranks = draw.rng.permuted(np.tile(np.arange(count), (samples, length, count, 1)), axis=-1)
    logits = np.round(_GAP * ranks + draw.rng.uniform(0, _GAP / 2, ranks.shape), 2)
    ends = draw_ends(draw, samples, new) if ends is None else ends
    logits[..., sizes.end] = RARE
    for sequence, end in enumerate(ends):
        if end <= new:
            logits[sequence, given + end - 2, :, sizes.end] = _GAP * (count + 1)
    logits[..., sizes.target_pad] = RARE - _GAP
    begin = draw_begin(draw, samples, given, sizes)
    return Script(logits, begin, length, sizes)


def draw_ends(draw: Draw, batch: int, new: int) -> list[int]:
    """Draw the number of the new token with which each sequence ends."""
    return [int(end) if end <= new else NEVER for end in draw.rng.integers(1, new + 2, size=batch)]


def draw_begin(draw: Draw, batch: int, given: int, sizes: Sizes) -> Array:
    """Draw given tokens (B, P) that begin with the start token."""
    words = _words(sizes)
    begin = draw.rng.choice(words, size=(batch, given))
    begin[:, 0] = sizes.start
    return begin.astype(np.int64)


def _words(sizes: Sizes) -> list[int]:
    special = (sizes.end, sizes.target_pad)
    return [one for one in range(sizes.target_vocabulary) if one not in special]


def after_end(script: Script) -> Script:
    """Return the script in which other words are best after an end, and a second end is far."""
    logits = script.logits.copy()
    logits[:, :, script.sizes.end, script.sizes.end] = RARE
    logits[:, :, script.sizes.target_pad, script.sizes.end] = RARE
    return script.but(logits=logits)


def greedy(subject: Subject, script: Script, probe: Probe | None = None) -> Array:
    """Return the tokens (B, M) that the backend decodes."""
    probe = probe or subject.part("greedy_decoding", script.sizes)
    tokens = probe.output(*script.inputs(subject))
    same_shape(tokens, (len(script.begin), script.length), what="decoded tokens")
    return tokens


def wanted(subject: Subject, script: Script, *, choices: Choices | None = None) -> Array:
    """Return the tokens (B, M) of the reference."""
    setting = Setting(script.sizes, choices or subject.choices)
    tokens: Array = ORACLES["greedy_decoding"](setting, *script.inputs(subject))
    return tokens


def decodes(subject: Subject, script: Script, *, what: str = "decoded tokens") -> Array:
    """Demand the tokens of the reference, and return them."""
    actual = greedy(subject, script)
    equal(actual, wanted(subject, script), what=what)
    return actual


def stops(subject: Subject) -> bool:
    """Say whether the end token is declared to end a sequence."""
    return subject.choices.decoding_stop == "end-token"


def require_stop(subject: Subject) -> None:
    """End as absent where nothing ends at the end token."""
    if not stops(subject):
        raise Absent(f"{subject.name} declares that it decodes to the greatest length")


def filling(subject: Subject, sizes: Sizes) -> int:
    """Return the id that is declared to follow an end token."""
    return sizes.target_pad if subject.choices.after_end == "padding" else sizes.end


# Beams


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
        shape = (len(self.script.begin), self.beams)
        same_shape(tokens, (*shape, self.script.length), what="hypotheses")
        if scores is not None:
            same_shape(scores, shape, what="scores")
        return Found(tokens, None if scores is None else as_floats(scores))

    def expected(self, **choices: str) -> Found:
        """Return the answer of the reference, under other choices where some are given."""
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
    **fixed: Any,
) -> BeamCall:
    """Draw a call without near ties, in which hypotheses end from the new token `ends_at` on.

    `ending` is how much likelier than other tokens the end is, in standard deviations; `wanted`
    says which calls are of use.
    """
    alpha = draw.choose((0.6, 0.0, 1.0)) if alpha is None else alpha
    sizes = draw_sizes(draw, vocabulary=draw.integer(6, 8), alpha=alpha)
    count = beams or draw.integer(1, 4)
    shape = {"batch": draw.choose((1, 2, 3)), "new": draw.integer(2, 5), **fixed}
    for _ in range(_TRIES):
        script = draw_script(draw, sizes=sizes, ends=[], **shape)
        logits = np.round(draw.rng.normal(scale=1.5, size=script.logits.shape), 3)
        logits[..., sizes.end] += 1.5 * ending
        logits[:, : script.given + ends_at - 2, :, sizes.end] = RARE
        logits[..., sizes.target_pad] = RARE - _GAP
        case = BeamCall(subject, script.but(logits=logits), count)
        if is_steady(case, draw) and wanted(case):
            return case
    raise Absent(f"{subject.precision} has near ties in every search that was drawn")


_TRIES = 60


def is_steady(case: BeamCall, draw: Draw) -> bool:
    """Say whether small changes of the scores leave the tokens of the reference as they are."""
    before = case.expected()
    if before.scores is None or np.ptp(before.scores) == np.inf:
        return False
    gap = 8 * case.tolerance
    if case.beams > 1 and -np.diff(before.scores, axis=1).max() < gap:
        return False
    for _ in range(2):
        noise = draw.rng.uniform(-gap, gap, size=case.script.logits.shape)
        moved = case.script.but(logits=case.script.logits + noise)
        if not np.array_equal(case.but(script=moved).expected().tokens, before.tokens):
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
