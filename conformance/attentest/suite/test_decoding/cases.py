"""Scripted models, calls that decode them, and the hypotheses of a beam."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.testing.assertions import equal, same_shape
from attentest.testing.draw import Draw
from attentest_spec import Choices, Sizes
from attentest_spec.generator import normalised
from attentest_spec.oracles import ORACLES
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
