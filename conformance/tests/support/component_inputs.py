"""Sizes and inputs of every component, for tests of the reference models and of the faults."""

import numpy as np

from attentest_spec import Sizes

SIZES = Sizes(
    d_model=8,
    heads=2,
    d_ff=7,
    layers=2,
    source_vocabulary=11,
    target_vocabulary=11,
    max_length=5,
    source_pad=3,
    target_pad=5,
    smoothing=0.1,
    trained_length=16,
    window=9,  # as long as the inputs: a row with a random mask keeps a key
)


def _tokens(rng, length, vocabulary, pad):
    tokens = rng.integers(0, vocabulary, size=(2, length))
    tokens[:, 0] = (pad + 1) % vocabulary
    tokens[0, -1] = pad
    return tokens


def _mask(rng, *shape):
    mask = rng.random(shape) < 0.6
    mask[..., 0] = True
    return mask


def inputs_of(component, sizes, rng):
    """Draw inputs of different scales and lengths."""
    d, s, t = sizes.d_model, 5, 3
    source = _tokens(rng, s, sizes.source_vocabulary, sizes.source_pad)
    target = _tokens(rng, t, sizes.target_vocabulary, sizes.target_pad)
    x, y = rng.normal(size=(2, s, d)), rng.normal(size=(2, t, d))
    table = {
        "padding_mask": (source, sizes.source_pad),
        "causal_mask": (4,),
        "target_mask": (target, sizes.target_pad),
        "attention": (
            *(rng.normal(size=(2, 3, n, w)) for n, w in ((t, 4), (s, 4), (s, 2))),
            _mask(rng, 2, 1, t, s),
        ),
        "multi_head_attention": (y, x, x[:, ::-1], _mask(rng, 2, 2, t, s)),
        "positional_encoding": (x,),
        "embedding": (source,),
        "layer_norm": (x * np.array([[1e-3], [1.0], [30.0], [1e-2], [1e3]]) + 2.0,),
        "rms_norm": (x * np.array([[1e-3], [1.0], [30.0], [1e-2], [1e3]]) + 2.0,),
        "feed_forward": (x,),
        "mixture_of_experts": (x,),
        "residual": (x, rng.normal(size=(d, d))),
        "encoder_layer": (x, _mask(rng, 2, 1, 1, s)),
        "encoder": (x, _mask(rng, 2, 1, 1, s)),
        "decoder_layer": (y, x, _mask(rng, 2, 1, 1, s), _mask(rng, 2, 1, t, t)),
        "decoder": (y, x, _mask(rng, 2, 1, 1, s), _mask(rng, 2, 1, t, t)),
        "generator": (y,),
        "model": (source, target),
        "batch": (source, target),
        "padded_batch": (np.arange(6, 11), np.array([3, 2])),
        "packed_batch": (np.arange(6, 11), np.array([3, 2])),
        # Positive numbers are an output of every kind.
        "loss": (rng.uniform(0.1, 0.9, size=(2, t, sizes.target_vocabulary)), target),
        "learning_rate": (5,),
        "optimiser": (rng.normal(size=4), rng.normal(size=(3, 4)), np.array([0.1, 0.2, 0.1])),
        "grouped_optimiser": (
            rng.normal(size=6),
            rng.normal(size=(3, 6)),
            np.array([0.1, 0.2, 0.1]),
            np.array([2, 3, 1]),
            np.array([0, 1, 2]),
            np.array([[True, True, False], [True, False, True], [True, True, True]]),
            1,
        ),
        "gradient_clipping": (rng.normal(size=6), np.array([2, 4]), np.array(0.5)),
        "cached_decoding": _program(source, target, sizes),
        "greedy_decoding": (_script(rng, sizes), _begin(sizes), 6),
        "beam_search": (_script(rng, sizes), _begin(sizes), 6, 3),
        "sampling": (rng.normal(size=(2, 7)),),
        "causal_layer": (x, _real(2, s), _places(2, s)),
        "language_model": (target, _real(2, t), _places(2, t)),
        "cached_language_model": (target, _real(2, t), _places(2, t), *_calls()),
        "rotary": (rng.normal(size=(2, 3, 5, 8)), np.array([[0, 1, 2, 3, 4], [9, 0, 7, 20, 3]])),
    }
    return table[component]


def _program(source, target, sizes):
    """Return a program of two chunks; what is returned at padding is unspecified."""
    real = np.where(target == sizes.target_pad, 0, target)
    return source, real, *_calls()


def _calls():
    """Return two chunks of two tokens and of one, the second after the first."""
    return np.array([2, 1]), np.array([-1, 0]), np.array([[0, 1], [0, 1]])


def _real(batch, length):
    """Return a mask that hides nothing: what is returned at padding is unspecified."""
    return np.ones((batch, length), dtype=bool)


def _places(batch, length):
    return np.array([[0], [1]])[:batch] + np.arange(length)


def _script(rng, sizes):
    """Draw the probabilities of a scripted model: the pad is rare, and the end is not."""
    v = sizes.target_vocabulary
    scores = rng.normal(size=(3, 6, v, v))
    scores[..., sizes.target_pad] = -20.0
    scores[..., sizes.end] += 1.0
    powers = np.exp(scores)
    return powers / powers.sum(axis=-1, keepdims=True)


def _begin(sizes):
    return np.full((3, 1), sizes.start)
