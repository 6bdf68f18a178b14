"""Views of the output of a component: masks, weights, values, distributions and curves."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from kinds import CURVES, DRIFT, MASK, SHARES, SPREAD, TABLE, VALUES, WEIGHTS
from views import LAST_IS_PAD, LOGITS, SIZES, WORDS, Ask, View, X, numbers, padding_effect

from attentest_spec import Sizes
from attentest_spec.setting import Array

SEQUENCES = np.array([[5, 7, 2, 4], [3, 6, 0, 0]])

# Masks and attention -----------------------------------------------------------------------------


def _mask(component: str, look: Callable[[Ask], Array], about: str) -> View:
    return View(component=component, look=look, kind=MASK, rows="query", columns="key", about=about)


def _of_second(mask: Array) -> Array:
    """Return the mask of the second sequence, as queries by keys."""
    return np.broadcast_to(mask, (2, 1, 4, 4))[1, 0]


FUTURE = _mask("causal_mask", lambda ask: ask(4).reshape(4, 4), "The causal mask of four tokens.")
PADDING = _mask(
    "padding_mask",
    lambda ask: _of_second(ask(SEQUENCES, 0)),
    "The padding mask of a sequence of two tokens and two pads.",
)
TARGET = _mask(
    "target_mask",
    lambda ask: _of_second(ask(SEQUENCES, 0)),
    "The target mask of a sequence of two tokens and two pads.",
)

# The cells that the padding mask of these views hides: the last key, for every query.
LAST_HIDDEN = np.broadcast_to(~LAST_IS_PAD[0, 0], (4, 4))


QUERY, KEY, VALUE = (numbers(1, 1, 4, 8, seed=seed) for seed in (11, 12, 13))


def _weights(about: str, mask: Array | None = None, query: Array = QUERY, key: Array = KEY) -> View:
    return View(
        component="attention",
        look=lambda ask: ask(query, key, VALUE, mask)[1][0, 0],
        kind=SHARES if mask is None else WEIGHTS,
        rows="query",
        columns="key",
        about=about,
        hidden=None if mask is None else LAST_HIDDEN,
    )


FREE_WEIGHTS = _weights("The weights of four queries for four keys, without a mask.")
MASKED_WEIGHTS = _weights("The weights of four queries; the last key is padding.", LAST_IS_PAD)
HUGE_WEIGHTS = _weights(
    "The weights if every score is below -10,000; the last key is padding.",
    LAST_IS_PAD,
    -2e4 * np.abs(QUERY),
    np.abs(KEY),
)


# Values, spreads and curves ----------------------------------------------------------------------


def _values(component: str, look: Callable[[Ask], Array], about: str, rows: str = "token") -> View:
    return View(
        component=component, look=look, kind=VALUES, rows=rows, columns="column", about=about
    )


HEADS_OUT = _values(
    "multi_head_attention", lambda ask: ask(X, X, X)[0], "The output for four tokens."
)
EMBEDDED = _values(
    "embedding",
    lambda ask: ask(np.array([[5, 3, 6, 0]]))[0],
    "The vectors of three tokens and a pad.",
)
NORMED = _values("layer_norm", lambda ask: ask(X)[0], "The output, with a random weight and bias.")
RMS_NORMED = _values("rms_norm", lambda ask: ask(X + 1.0)[0], "The output, with a random weight.")
RMS_TINY = _values("rms_norm", lambda ask: ask(X * 2e-3)[0], "The output for very small rows.")
SHARED_OUT = replace(HEADS_OUT, sizes=SIZES.but(heads=6, kv_heads=2))
FED = _values("feed_forward", lambda ask: ask(X)[0], "The output for four tokens.")
MIXED = _values("mixture_of_experts", lambda ask: ask(X)[0], "The output for four tokens.")
SKIP_ONLY = _values(
    "residual",
    lambda ask: ask(X, np.zeros((6, 6)))[0],
    "The sublayer returns zeros, so the output is that of the skip connection.",
)
ENCODED = _values("encoder", lambda ask: ask(X)[0], "The output for four tokens, with two layers.")
SIX_TOKENS = SIZES.but(target_vocabulary=6)
SCORED = replace(
    _values("generator", lambda ask: ask(X)[0], "The output for a vocabulary of six.", rows="step"),
    sizes=SIX_TOKENS,
)
REVERSED = replace(
    _values(
        "model",
        lambda ask: (ask(WORDS, WORDS) - ask(WORDS[:, ::-1].copy(), WORDS))[0],
        "The change of the output when the tokens of the source are reversed.",
        rows="step",
    ),
    choices=LOGITS,
)


def _positions(batch: int, about: str) -> View:
    return View(
        component="positional_encoding",
        look=lambda ask: ask(np.zeros((batch, 48, 16)))[-1].T,
        kind=TABLE,
        rows="column",
        columns="token",
        about=about,
        sizes=SIZES.but(d_model=16, max_length=48),
    )


POSITIONS = _positions(1, "The values added to a sequence of 48 tokens.")
POSITIONS_OF_SECOND = _positions(2, "The values added to the second sequence of a batch.")

UNEVEN = (X * np.array([0.3, 1.0, 2.0, 0.6])[:, None]) + np.array([0.0, -2.0, 1.0, 3.0])[:, None]


def _spread(component: str, look: Callable[[Ask], Array], about: str) -> View:
    return View(
        component=component,
        look=look,
        kind=SPREAD,
        rows="value",
        columns="position",
        about=about,
        plain_norms=True,
    )


NORM_SPREAD = _spread(
    "layer_norm",
    lambda ask: ask(UNEVEN[0][None])[0],
    "The norm of four positions with different means and standard deviations.",
)
NORM_TINY = _spread(
    "layer_norm",
    lambda ask: ask(UNEVEN[0][None] * 4e-3)[0],
    "The norm of four positions with very small standard deviations.",
)
RESIDUAL_SPREAD = _spread(
    "residual", lambda ask: ask(X * 2.0, numbers(6, 6, seed=3))[0], "The output at four positions."
)
ENCODER_SPREAD = _spread("encoder", lambda ask: ask(X * 2.0)[0], "The output at four positions.")

STEPS = np.linspace(-4.0, 4.0, 81)


def _curve(scale: float, about: str) -> View:
    line = numbers(6, seed=5) + scale * STEPS[None, :, None] * numbers(6, seed=6)
    return View(
        component="feed_forward",
        look=lambda ask: ask(line)[0][:, :3],
        kind=CURVES,
        rows="output",
        columns="input along a line",
        about=about,
        across=scale * STEPS,
    )


NEAR_CURVE = _curve(0.4, "Three columns of the output for inputs along a short line.")
CURVE = _curve(1.0, "Three columns of the output for inputs along a straight line.")
FAR_CURVE = _curve(100.0, "Three columns of the output for inputs along a long line.")


def _pads(pad: int) -> View:
    return View(
        component="model",
        look=lambda ask: padding_effect(ask, [5, 3], WORDS, pad, 6),
        kind=DRIFT,
        rows="output",
        columns="pads after the source",
        about="The change of the last step of the output when pads are added after the source.",
        sizes=SIZES.but(source_pad=pad),
        choices=LOGITS,
        across=np.arange(7),
    )


PADS, PADS_OF_ONE = _pads(0), _pads(1)


def _shares(component: str, look: Callable[[Ask], Array], about: str) -> View:
    return View(
        component=component, look=look, kind=SHARES, rows="step", columns="token", about=about
    )


PROBABILITIES = replace(
    _shares("generator", lambda ask: ask(X)[0], "The output for a vocabulary of six."),
    sizes=SIX_TOKENS,
)

# Batches -----------------------------------------------------------------------------------------

PAIR = np.array([[5, 3, 6, 2]]), np.array([[1, 5, 3, 6, 2], [1, 4, 2, 0, 0]])
ENDS_ARE_PADS = SIZES.but(end=0)
ROW = np.array([1, 5, 3, 2, 1, 4, 6, 6, 2]), np.array([4, 5])


def _of_batch(component: str, about: str, look: Callable[[Ask], Array], sizes: Sizes) -> View:
    return View(
        component=component,
        look=look,
        kind=VALUES,
        rows="sequence",
        columns="step",
        about=about,
        sizes=sizes,
    )


GIVEN = _of_batch(
    "batch",
    "The target of the decoder for the targets (1, 5, 3, 6, 2) and (1, 4, 2) with two pads.",
    lambda ask: np.asarray(ask(*PAIR)[1]),
    SIZES,
)
PACKED = _of_batch(
    "packed_batch",
    "The target of the packed sequences (1, 5, 3, 2) and (1, 4, 6, 6, 2).",
    lambda ask: np.asarray(ask(*ROW)[1]),
    SIZES,
)
KEPT = replace(
    _of_batch(
        "padded_batch",
        "The mask of two padded sequences of three and two words. The end and the pad are 0.",
        lambda ask: np.asarray(ask(np.array([5, 3, 6, 4, 2]), np.array([3, 2]))[1]),
        ENDS_ARE_PADS,
    ),
    kind=MASK,
    columns="position",
)
READ_MASK = _mask(
    "batch",
    lambda ask: np.asarray(ask(*PAIR)[3])[1, 0],
    "The target mask of the second target, (1, 4, 2) with two pads.",
)
PACKED_MASK = _mask(
    "packed_batch",
    lambda ask: np.asarray(ask(*ROW)[3])[0, 0],
    "The mask of two packed sequences of three and of four steps.",
)

# The loss ----------------------------------------------------------------------------------------

STEP = 1e-4
SCORES = numbers(2, 4, 6, seed=21)
PADDED = np.array([[2, 5, 1, 4], [3, 1, 0, 0]])
FULL = np.array([[2, 5, 1, 4], [3, 1, 5, 2]])


def _slopes(ask: Ask, target: Array) -> Array:
    """Return the change of the loss per unit of every logit: steps down, words across."""
    slopes = np.zeros_like(SCORES)
    for place in np.ndindex(SCORES.shape):
        step = np.zeros_like(SCORES)
        step[place] = STEP
        more, less = (float(ask(SCORES + sign * step, target)) for sign in (1, -1))
        slopes[place] = (more - less) / (2 * STEP)
    return slopes.reshape(-1, SCORES.shape[-1])


def _pushed(target: Array, about: str, rate: float = 0.0) -> View:
    return View(
        component="loss",
        look=lambda ask: _slopes(ask, target),
        kind=VALUES,
        rows="step of two sequences",
        columns="word",
        about=about,
        sizes=SIZES.but(target_vocabulary=6, smoothing=rate),
    )


PUSHED = _pushed(PADDED, "The gradient of the logits; the last two steps are padding, the word 0.")
PUSHED_SMOOTHED = _pushed(
    PADDED,
    "The gradient of the logits with a smoothing of 0.3; the last two steps are padding.",
    0.3,
)
PUSHED_FULL = _pushed(FULL, "The gradient of the logits of two sequences without padding.")

MODEL_PROBABILITIES = _shares("model", lambda ask: ask(WORDS, WORDS)[0], "The model's output.")
