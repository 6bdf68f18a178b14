"""Decoding, from its definitions: greedy, beam search, and the distribution to sample from.

The model is a table of scores: what it answers depends on the last token of a prefix and on how
many tokens the prefix has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from attentest_spec.attention import softmax
from attentest_spec.generator import log_softmax
from attentest_spec.setting import Floats, Setting, Tokens

Following = Callable[[Annotated[Tokens, "B L"]], Annotated[Floats, "B V"]]
"""A function of the tokens of sequences that returns the scores of the next token of each."""


def greedy_decoding(
    given: Setting,
    scores: Annotated[Floats, "B L V V"],
    begin: Annotated[Tokens, "B P"],
    length: int,
) -> Annotated[Tokens, "B M"]:
    """Continue every sequence by the token of the greatest score, until its end or `length`.

    The scores (B, L, V, V) of the next token at a position and after a token, and given tokens
    (B, P), perhaps padded, give (B, M) with M the `length`. Of equal scores the lowest id is taken.
    Choices: `decoding_stop`, `after_end`. Source: section 6.1.
    """

    def following(tokens: Tokens) -> Floats:
        rows = zip(scores, tokens.tolist(), strict=True)
        return np.array([next_scores(given, table, row) for table, row in rows])

    return continue_greedily(given, following, begin, length)


def continue_greedily(
    given: Setting, following: Following, begin: Annotated[Tokens, "B P"], length: int
) -> Annotated[Tokens, "B M"]:
    """Continue the given tokens (B, P) to (B, M), M the `length`, by what `following` answers.

    It is called with (B, L) and returns the scores of the next token (B, V), until all sequences
    have ended. Choices: `decoding_stop`, `after_end`.
    """
    tokens, ended = begin, np.zeros(len(begin), dtype=bool)
    while tokens.shape[1] < length and not ended.all():
        best = np.where(ended, _fill(given), following(tokens).argmax(axis=-1))
        tokens = np.concatenate([tokens, best[:, None]], axis=1)
        if given.choices.decoding_stop == "end-token":
            ended = ended | (best == given.sizes.end)
    missing = max(0, length - tokens.shape[1])
    return np.pad(tokens, ((0, 0), (0, missing)), constant_values=_fill(given)).astype(np.int64)


def next_scores(
    given: Setting, scores: Annotated[Floats, "L V V"], prefix: Sequence[int]
) -> Annotated[Floats, "V"]:
    """Return the scores (V) of the next token after `prefix`, out of those (L, V, V) of a sequence.

    Padding in the prefix is no token: it neither counts nor is it the last one.
    """
    real = [token for token in prefix if token != given.sizes.target_pad]
    following: Floats = scores[len(real) - 1, real[-1]]
    return following


def _ended(given: Setting, new: Sequence[int]) -> bool:
    stops = given.choices.decoding_stop == "end-token"
    return stops and bool(new) and new[-1] == given.sizes.end


def _filled(given: Setting, tokens: Sequence[int], length: int) -> list[int]:
    return [*tokens, *[_fill(given)] * (length - len(tokens))]


def _fill(given: Setting) -> int:
    """Return the token after an end. Choice: `after_end`."""
    sizes = given.sizes
    return sizes.target_pad if given.choices.after_end == "padding" else sizes.end


@dataclass(frozen=True)
class Hypothesis:
    """The beginning of a sequence, and the sum of the log-probabilities of its `new` tokens."""

    begin: tuple[int, ...]
    new: tuple[int, ...] = ()
    total: float = 0.0
    finished: bool = False


def beam_search(
    given: Setting,
    scores: Annotated[Floats, "B L V V"],
    begin: Annotated[Tokens, "B P"],
    length: int,
    beams: int,
) -> tuple[Annotated[Tokens, "B N M"], Annotated[Floats, "B N"]]:
    """Return the best hypotheses that a beam finds, the best first, and their scores.

    The scores (B, L, V, V) of the next token at a position and after a token, and given tokens
    (B, P) give tokens (B, N, M) and scores (B, N), with N the number of `beams` and M the
    `length`. Choices: `output`, `length_penalty`, `counted_length`, `finished_beams`, `beam_stop`,
    `decoding_stop`, `after_end`. Source: section 6.1; Wu et al. 2016, section 7.
    """
    search = _in_beam if given.choices.finished_beams == "in-beam" else _set_aside
    found = []
    for table, row in zip(log_probabilities(given, scores), begin, strict=True):
        held = search(given, table, Hypothesis(tuple(map(int, row))), length, beams)
        found.append(_best(held, beams, lambda one: score(given, one)))
    tokens = [[_filled(given, (*one.begin, *one.new), length) for one in row] for row in found]
    return np.array(tokens), np.array([[score(given, one) for one in row] for row in found])


def log_probabilities(
    given: Setting, scores: Annotated[Floats, "*rows V"]
) -> Annotated[Floats, "*rows V"]:
    """Return the logarithms of the probabilities that the scores (.., V) are, as declared."""
    if given.choices.output == "logits":
        return log_softmax(scores)
    if given.choices.output == "log-probabilities":
        return scores
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms: Floats = np.log(scores)
    return logarithms


def score(given: Setting, one: Hypothesis) -> float:
    """Return the sum of log-probabilities over the penalty of the length (Wu et al. 2016, 14)."""
    count = len(one.new)
    if given.choices.counted_length == "without-end":
        count -= one.finished
    elif given.choices.counted_length == "all":
        count += len(one.begin)
    penalty = {"wu": (5 + count) / 6, "power": float(count), "none": 1.0}
    divisor: float = penalty[given.choices.length_penalty] ** given.sizes.alpha
    return one.total / divisor if divisor else one.total


def _best(
    held: Sequence[Hypothesis], count: int, key: Callable[[Hypothesis], float]
) -> list[Hypothesis]:
    return sorted(held, key=key, reverse=True)[:count]


def _extensions(given: Setting, table: Floats, one: Hypothesis) -> list[Hypothesis]:
    """Return `one` with each token of the vocabulary after it; itself where it is finished."""
    if one.finished:
        return [one]
    following = next_scores(given, table, (*one.begin, *one.new))
    return [
        Hypothesis(one.begin, new, one.total + float(value), _ended(given, new))
        for token, value in enumerate(following)
        for new in [(*one.new, token)]
    ]


def _in_beam(
    given: Setting, table: Floats, start: Hypothesis, length: int, beams: int
) -> list[Hypothesis]:
    """Search with finished hypotheses in the beam, ranked by their scores."""
    held = [start]
    for _ in range(length - len(start.begin)):
        grown = [other for one in held for other in _extensions(given, table, one)]
        held = _best(grown, beams, lambda one: score(given, one))
    return held


def _set_aside(
    given: Setting, table: Floats, start: Hypothesis, length: int, beams: int
) -> list[Hypothesis]:
    """Search with finished hypotheses aside, ranked by their sums.

    Only what ranks among the first `beams` can finish; as many open ones are kept.
    """
    held, finished = [start], list[Hypothesis]()
    stop = given.choices.beam_stop
    for size in range(len(start.begin) + 1, length + 1):
        grown = [other for one in held for other in _extensions(given, table, one)]
        ranked = _best(grown, len(grown), lambda one: one.total)
        finished += [one for one in ranked[:beams] if one.finished]
        held = [one for one in ranked if not one.finished][:beams]
        ends = stop == "n-finished" or (stop == "n-before-length" and size < length)
        if ends and len(finished) >= beams:
            return finished
    return finished + held


def sampling(given: Setting, logits: Annotated[Floats, "B V"]) -> Annotated[Floats, "B V"]:
    """Return the probabilities to draw the next token by, under the settings in the sizes.

    Logits (B, V) give (B, V), by `temperature`, `top_k` and `top_p`; at a temperature of 0 there
    are none, and all are NaN. Choices: `filter_order`, `nucleus`. Source: Fan et al. 2018 (top-k),
    Holtzman et al. 2019, section 3.1 (top-p).
    """
    heat = given.sizes.temperature
    if heat == 0:
        return np.full_like(logits, np.nan)
    if given.choices.filter_order == "temperature-first":
        return softmax(_filtered(given, logits / heat))
    return softmax(_filtered(given, logits) / heat)


def _filtered(given: Setting, logits: Floats) -> Floats:
    """Return the logits with minus infinity for the tokens that are filtered out."""
    few = top_k(logits, given.sizes.top_k)
    whole = few if given.choices.nucleus == "of-what-is-left" else logits
    kept: Floats = np.where(top_p(softmax(whole), given.sizes.top_p), few, -np.inf)
    return kept


def top_k(logits: Annotated[Floats, "B V"], count: int) -> Annotated[Floats, "B V"]:
    """Return logits (B, V) with minus infinity for all below the `count` greatest; 0 keeps all."""
    if not 0 < count < logits.shape[-1]:
        return logits
    least = np.sort(logits, axis=-1)[:, -count, None]
    kept: Floats = np.where(logits >= least, logits, -np.inf)
    return kept


def top_p(probabilities: Annotated[Floats, "B V"], share: float) -> Annotated[Floats, "B V"]:
    """Return 1 for the fewest tokens whose probabilities (B, V) sum to `share` or more, 0 else.

    The token at which the sum reaches the share is kept; (B, V) is returned.
    """
    if share >= 1:
        return np.ones_like(probabilities)
    order = np.argsort(-probabilities, axis=-1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, axis=-1)
    before = np.cumsum(ranked, axis=-1) - ranked
    kept = np.zeros_like(probabilities)
    np.put_along_axis(kept, order, (before < share).astype(np.float64), axis=-1)
    kept[np.arange(len(kept)), order[:, 0]] = 1.0
    return kept
