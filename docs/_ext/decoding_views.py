"""Views of decoding: tokens, distributions to draw from, and the scores of steps with a cache."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from kinds import SHARES, WRITTEN
from views import LOGITS, Ask, View

from attentest_spec import Sizes
from attentest_spec.setting import Array, Floats

WORDS = Sizes(target_vocabulary=7, source_vocabulary=7, alpha=0.6)
LENGTH = 6
BEGIN = np.array([[WORDS.start], [WORDS.start]])


def _scores() -> Floats:
    """Return the probabilities of a scripted model: the first of two sequences ends early."""
    rng = np.random.default_rng(11)
    powers = np.exp(1.5 * rng.normal(size=(2, LENGTH, 7, 7)))
    powers[..., WORDS.target_pad] = powers[..., WORDS.end] = 1e-4
    powers[0, 1, :, WORDS.end] = 100.0
    powers[1, 3, :, WORDS.end] = 4.0
    probabilities: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return probabilities


SCORES = _scores()


def _written(tokens: Array) -> Array:
    """Return tokens (T) as a matrix (T, V) with a 1 for each."""
    return np.eye(WORDS.target_vocabulary)[np.asarray(tokens)]


def _tokens(component: str, look: Callable[[Ask], Array], about: str) -> View:
    return View(
        component=component,
        look=lambda ask: _written(look(ask)),
        kind=WRITTEN,
        rows="place",
        columns="token",
        about=about,
        sizes=WORDS,
    )


FIRST_ENDS = _tokens(
    "greedy_decoding",
    lambda ask: ask(SCORES, BEGIN, LENGTH)[0],
    "The first of two sequences; start is token 1, end token 2, padding token 0.",
)
SECOND_GOES_ON = _tokens(
    "greedy_decoding",
    lambda ask: ask(SCORES, BEGIN, LENGTH)[1],
    "The second of two sequences, after the first one has ended; end is token 2.",
)
BEST_OF_BEAM = _tokens(
    "beam_search",
    lambda ask: np.concatenate(ask(SCORES, BEGIN, LENGTH, 3)[0][1, :2]),
    "The two best hypotheses of the second sequence, one below the other, of three beams.",
)

LOGIT_ROWS = np.array([[2.0, 1.5, 0.5, 0.0, -0.5, -1.0, 1.0], [0.0, 2.5, 0.2, 1.8, 0.4, -2.0, 1.0]])


def _drawn_by(about: str, **settings: float) -> View:
    return View(
        component="sampling",
        look=lambda ask: ask(LOGIT_ROWS),
        kind=SHARES,
        rows="sequence",
        columns="token",
        about=about,
        sizes=WORDS.but(**settings),
        choices=LOGITS,
    )


HEATED = _drawn_by("The probabilities of seven tokens at a temperature of 2.", temperature=2.0)
NUCLEUS = _drawn_by("The probabilities of seven tokens with top-p at 0.7.", top_p=0.7)


CACHED = Sizes(source_vocabulary=7, target_vocabulary=7, max_length=24)
SOURCE = np.array([[3, 4, 5, 0], [6, 3, 4, 5]])
SENTENCES = np.array([[1, 3, 5, 4, 6, 3], [1, 4, 3, 6, 5, 3]])


def _steps(about: str, target: Array = SENTENCES, **program: Sequence[Any]) -> View:
    """Return a view of the output for the first row of a `target` (B, T), by default step by step.

    Both rows have one source where rows are reordered.
    """
    chunks = program.get("chunks", [1] * target.shape[1])
    after = program.get("after", range(-1, len(chunks) - 1))
    origin = program.get("origin", [[0, 1]] * len(chunks))
    source = SOURCE if "origin" not in program else SOURCE[[0, 0]]
    given = (np.array(one) for one in (chunks, after, origin))
    inputs = (source, target, *given)
    return View(
        component="cached_decoding",
        look=lambda ask: np.asarray(ask(*inputs))[0],
        kind=SHARES,
        rows="step",
        columns="token",
        about=about,
        sizes=CACHED,
    )


ONE_BY_ONE = _steps("The output for one sentence, one token at a time.")
IN_CHUNKS = _steps("The output for one sentence in two chunks of three tokens.", chunks=[3, 3])
EXCHANGED = _steps(
    "The output for one row of two, which continues the other one after the third token.",
    origin=[[0, 1], [0, 1], [0, 1], [1, 1], [0, 1], [0, 1]],
)
PADDED_PROMPT = _steps(
    "The output for a prompt of one token and two of padding, and for three tokens after it.",
    target=np.array([[1, 0, 0, 4, 6, 3], [1, 4, 3, 6, 5, 3]]),
    chunks=[3, 1, 1, 1],
)
LONG_SENTENCE = _steps(
    "The output for 22 tokens, one at a time.",
    target=np.resize(SENTENCES, (2, 22)),
)
