"""Checks of the chapter `decoding`: the distribution that the next token is drawn from."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, fits, rounding
from attentest.judging.check import check
from attentest.testing.assertions import equal, finite, holds, matches, near, same_shape
from attentest.testing.common import same_precision
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.attention import softmax
from attentest_spec.decoding import top_k
from attentest_spec.setting import Array, Floats

COMPONENT = "sampling"


@dataclass(frozen=True)
class Sampling:
    """One call: the part, and logits (B, V)."""

    probe: Probe
    logits: Floats

    def output(self) -> Array:
        """Return the probabilities (B, V), of the right shape and precision."""
        actual = self.probe.output(self.logits)
        same_shape(actual, self.logits.shape, what="probabilities")
        same_precision(self.probe, actual)
        return actual

    def right(self) -> Floats:
        """Demand the probabilities of the reference, and return them."""
        actual = self.output()
        matches(self.probe, self.logits, actual=actual, what="probabilities")
        return as_floats(actual)

    def kept(self) -> Array:
        """Return which tokens (B, V) have a probability above 0."""
        kept: Array = as_floats(self.output()) > 0
        return kept


def draw_logits(draw: Draw, *, batch: int = 0, vocabulary: int = 0) -> Floats:
    """Draw logits (B, V) that differ within a row, in any order."""
    samples, ids = batch or draw.batch(), vocabulary or draw.integer(4, 9)
    ranks = draw.rng.permuted(np.tile(np.arange(ids), (samples, 1)), axis=-1)
    logits = 0.5 * ranks + draw.rng.uniform(0, 0.25, ranks.shape) - draw.choose((0.0, 3.0))
    return cast(np.round(logits, 2), draw.subject.precision)


def of(subject: Subject, logits: Floats, **settings: float) -> Sampling:
    """Build the part with these settings of sampling."""
    ids = logits.shape[-1]
    sizes = Sizes(target_vocabulary=ids, source_vocabulary=ids).but(**settings)
    return Sampling(subject.part(COMPONENT, subject.limits.fitted(sizes)), logits)


def ranked(probabilities: Floats) -> Floats:
    """Return the probabilities (B, V) of every row, the greatest first."""
    return -np.sort(-probabilities, axis=-1)


def draw_share(draw: Draw, *distributions: Floats, least: int = 0) -> float:
    """Draw p between two sums of the most probable tokens, far from the sums of all rows.

    At the share, each of the `distributions` (B, V) keeps more than `least` tokens.
    """
    sums = np.concatenate([ranked(one).cumsum(axis=-1) for one in distributions])
    edges = np.unique(np.concatenate([[0.0], sums.ravel()]))
    low = float(sums[:, least - 1].max()) if least else 0.0
    middles = [
        (one + other) / 2
        for one, other in pairwise(edges)
        if other - one > _APART and low < one and other < 1
    ]
    if not middles:
        raise Absent("every share is near a sum of probabilities")
    return float(draw.choose([round(one, 4) for one in middles]))


_APART = 0.01
"""The least distance of p from a sum, so that no rounding moves a token over it."""


def nucleus_of(subject: Subject, logits: Floats, temperature: float, count: int) -> list[Floats]:
    """Return the distributions that top-p may take its sum of, under any declared choice."""
    heated = [logits, logits / temperature]
    return [softmax(one) for all_ in heated for one in (all_, top_k(all_, count))]


@check("decoding.sampling-formula", examples=6)
def test_sampling_formula(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    heat, count = draw.choose((0.7, 1.0, 1.6)), draw.choose((0, 3, 2, 6))
    share = draw_share(draw, *nucleus_of(subject, logits, heat, count))
    of(subject, logits, temperature=heat, top_k=count, top_p=draw.choose((share, 1.0))).right()
    few = draw.choose((3, 2))
    share = draw_share(draw, *nucleus_of(subject, logits, heat, few))
    of(subject, logits, temperature=heat, top_k=few, top_p=share).right()


@check("decoding.sampling-normalised", examples=5)
def test_sampling_normalised(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw, batch=draw.choose((2, 3, 5)))
    share = draw_share(draw, *nucleus_of(subject, logits, 1.3, 3))
    for settings in ({}, {"top_k": 3}, {"top_p": share}, {"temperature": 1.3, "top_k": 3}):
        actual = as_floats(of(subject, logits, **settings).output())
        finite(actual, what="probabilities")
        holds(bool((actual >= 0).all()), "A probability is negative.", actual=actual)
        sums = actual.sum(axis=-1)
        ones, ids = np.ones_like(sums), logits.shape[-1]
        near(subject, sums, ones, terms=4 * ids, what=f"sums of the probabilities at {settings}")


@check("decoding.sampling-unchanged", examples=4)
def test_sampling_unchanged(subject: Subject, draw: Draw) -> None:
    # In float16 the least probable of 70 tokens has a probability of 0.
    vocabularies = (9, 5) if subject.precision == "float16" else (70, 9, 5)
    case = of(subject, draw_logits(draw, vocabulary=draw.choose(vocabularies)))
    actual = case.right()
    holds(bool((actual > 0).all()), "A token is filtered out, without a filter.", actual=actual)


@check("decoding.sampling-temperature", examples=4)
def test_sampling_temperature(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    for heat in (0.5, 2.0, draw.choose((0.8, 1.4))):
        of(subject, logits, temperature=heat).right()


@check("decoding.sampling-cold", examples=4)
def test_sampling_cold(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    best = np.eye(logits.shape[-1])[logits.argmax(axis=-1)]
    for heat in (1e-3, 3e-3):
        actual = as_floats(of(subject, logits, temperature=heat).output())
        finite(actual, what="probabilities")
        near(subject, actual, best, what=f"probabilities at a temperature of {heat}")


@check("decoding.sampling-zero-temperature", examples=3)
def test_sampling_zero_temperature(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    best = np.eye(logits.shape[-1])[logits.argmax(axis=-1)]
    try:
        actual = of(subject, logits, temperature=0.0).output()
    except BackendError:
        return
    equal(actual, best, what="probabilities at a temperature of 0")


@check("decoding.sampling-top-k", examples=4)
def test_sampling_top_k(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw, batch=draw.choose((2, 3, 5)))
    ids = logits.shape[-1]
    for count in (draw.integer(2, ids - 1), 1, ids, 0):
        case = of(subject, logits, top_k=count)
        kept, wished = case.kept(), logits >= np.sort(logits, axis=-1)[:, -(count or ids), None]
        numbers = sorted(set(kept.sum(axis=-1).tolist()))
        text = f"Top-k with k = {count} keeps {numbers} of {ids} tokens"
        holds(numbers == [count or ids], f"{text}.", actual=kept)
        holds(bool((kept == wished).all()), f"{text}, not those of the greatest logits.")
        case.right()


@check("decoding.sampling-top-k-ties", examples=4)
def test_sampling_top_k_ties(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw, vocabulary=draw.integer(6, 8))
    count = draw.integer(3, 4)
    order = (-logits).argsort(axis=-1)
    least = np.take_along_axis(logits, order[:, count - 1 : count], axis=-1)
    for place in (1, count):  # the two best are equally good, and so are the k-th and the next
        equals = np.take_along_axis(logits, order[:, place - 1 : place], axis=-1)
        np.put_along_axis(logits, order[:, place : place + 1], equals, axis=-1)
    kept = of(subject, logits, top_k=count).kept()
    numbers = kept.sum(axis=-1)
    text = f"Where two tokens are equally good, top-k with k = {count} keeps {numbers.tolist()}."
    holds(bool((numbers >= count).all()), text, actual=kept)
    holds(not (kept & (logits < least)).any(), f"{text} One is worse than they are.", actual=kept)
    holds(bool((kept | ~(logits > least)).all()), f"{text} A better one is lost.", actual=kept)


@check("decoding.sampling-top-p", examples=5)
def test_sampling_top_p(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    probabilities = softmax(logits)
    share = draw_share(draw, probabilities)
    case = of(subject, logits, top_p=share)
    kept = case.kept()
    sums, ordered = (probabilities * kept).sum(axis=-1), ranked(probabilities)
    least = np.where(kept, probabilities, np.inf).min(axis=-1)
    text = f"Top-p with p = {share:g} keeps tokens whose probabilities sum to"
    holds(bool((sums >= share).all()), f"{text} {sums.min():.4g} only.", actual=kept)
    fewer = sums - least
    holds(bool((fewer < share).all()), f"{text} {fewer.max():.4g} without the last.", actual=kept)
    place = np.arange(ordered.shape[1]) < kept.sum(axis=-1)[:, None]
    greatest = np.isclose((ordered * place).sum(axis=-1), sums, rtol=1e-6)
    holds(bool(greatest.all()), "Top-p keeps other tokens than the most probable.", actual=kept)
    case.right()


@check("decoding.sampling-keeps-the-best", examples=4)
def test_sampling_keeps_the_best(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    best = np.eye(logits.shape[-1])[logits.argmax(axis=-1)]
    least = float(softmax(logits).max(axis=-1).min()) / 4
    for settings in ({"top_p": least}, {"top_k": 1}, {"top_p": least, "top_k": 1}):
        actual = of(subject, logits, **settings).output()
        equal(actual, best, what=f"probabilities at {settings}")


@check("decoding.sampling-filtered-zero", examples=4)
def test_sampling_filtered_zero(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    hidden = draw.rng.random(logits.shape) < 0.3
    hidden[np.arange(len(logits)), logits.argmax(axis=-1)] = False
    masked = np.where(hidden, -np.inf, logits)
    case = of(subject, masked)
    actual = case.right()
    text = "A token of minus infinity has a probability above 0."
    holds(not actual[hidden].any(), text, actual=actual)
    filtered = of(subject, 10.0 + logits, top_k=2).right()
    zeros = (filtered == 0).sum(axis=-1)
    expected = logits.shape[-1] - 2
    text = f"Top-k with k = 2 leaves {zeros.tolist()} zeros in the rows, not {expected}."
    holds(bool((zeros == expected).all()), text, actual=filtered)


@check("decoding.sampling-order", examples=4)
def test_sampling_order(subject: Subject, draw: Draw) -> None:
    heat = draw.choose((2.5, 0.4))
    logits = draw_logits(draw, batch=3, vocabulary=8)
    plain, heated = softmax(logits), softmax(logits / heat)
    for _ in range(20):
        share = draw_share(draw, plain, heated)
        sets = [(ranked(one).cumsum(axis=-1) < share).sum(axis=-1) for one in (plain, heated)]
        if (sets[0] != sets[1]).any():
            break
    else:
        raise Absent("the two orders keep the same tokens")
    case = of(subject, logits, temperature=heat, top_p=share)
    _declared(case, "filter_order", ("temperature-first", "filters-first"))


@check("decoding.sampling-nucleus", examples=4)
def test_sampling_nucleus(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw, batch=3, vocabulary=8) / 4
    count = draw.integer(4, 6)
    whole, few = softmax(logits), softmax(top_k(logits, count))
    for _ in range(20):
        share = draw_share(draw, whole, few)
        sets = [(ranked(one).cumsum(axis=-1) < share).sum(axis=-1) for one in (whole, few)]
        if (np.minimum(sets[0], count - 1) != sets[1]).any():
            break
    else:
        raise Absent("the two distributions keep the same tokens")
    case = of(subject, cast(logits, subject.precision), top_k=count, top_p=share)
    _declared(case, "nucleus", ("of-what-is-left", "of-all"))


def _declared(case: Sampling, choice: str, options: tuple[str, str]) -> None:
    """Demand the probabilities of the declared option, where another one gives others."""
    actual, choices = case.output(), case.probe.subject.choices
    shown = [
        option
        for option in options
        if fits(case.probe, case.logits, actual=actual, choices=choices.but(**{choice: option}))
    ]
    declared = choices[choice]
    if shown and declared not in shown:
        text = f"{choice} is declared as {declared}; the probabilities show {' '.join(shown)}."
        holds(False, text, actual=actual)
    matches(case.probe, case.logits, actual=actual, what="probabilities")


@check("decoding.sampling-rows-apart", examples=4)
def test_sampling_rows_apart(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw, batch=draw.choose((2, 3, 5)))
    logits = cast(as_floats(logits) + 2.0 * np.arange(len(logits))[:, None], subject.precision)
    share = draw_share(draw, *nucleus_of(subject, logits, 1.0, 3))
    for settings in ({"top_k": 3}, {"top_p": share}, {"temperature": 1.5}):
        together = of(subject, logits, **settings).output()
        rows = [of(subject, row[None], **settings).output() for row in logits]
        what = f"probabilities of a batch at {settings}"
        near(subject, as_floats(together), as_floats(np.concatenate(rows)), what=what, terms=16)


@check("decoding.sampling-sorted-back", examples=4)
def test_sampling_sorted_back(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    order = draw.rng.permutation(logits.shape[-1])
    share = draw_share(draw, *nucleus_of(subject, logits, 1.0, 3))
    for settings in ({"top_p": share}, {"top_k": 3}):
        before = of(subject, logits, **settings).output()
        after = of(subject, logits[:, order], **settings).output()
        what = f"probabilities of reordered logits at {settings}"
        near(subject, as_floats(after), as_floats(before[:, order]), what=what, terms=16)
        of(subject, logits[:, order], **settings).right()


@check("decoding.sampling-shift", examples=4)
def test_sampling_shift(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    share = draw_share(draw, *nucleus_of(subject, logits, 1.0, 3))
    for settings in ({}, {"top_p": share}, {"top_k": 3}):
        before = as_floats(of(subject, logits, **settings).output())
        for shift in (-40.0, 1000.0):
            moved = cast(logits + shift, subject.precision)
            actual = as_floats(of(subject, moved, **settings).output())
            finite(actual, what=f"probabilities of logits raised by {shift:g}")
            same_shape(actual, before.shape, what="probabilities")
            # Logits are rounded where they are large.
            room = 4 * rounding(subject.precision, 16) * abs(shift)
            off = float(np.abs(actual - before).max())
            if room > _APART / 4:
                continue
            text = f"Probabilities differ by {off:.3g} where all logits are raised by {shift:g}."
            holds(off <= room, text, actual=actual, expected=before)


@check("decoding.sampling-input-untouched", examples=3)
def test_sampling_input_untouched(subject: Subject, draw: Draw) -> None:
    logits = draw_logits(draw)
    share = draw_share(draw, *nucleus_of(subject, logits, 1.4, 3))
    # Every call compares its inputs before and after.
    of(subject, logits, temperature=1.4, top_k=3, top_p=share).output()
    of(subject, logits, top_k=2).output()
    of(subject, logits, top_p=share).output()
