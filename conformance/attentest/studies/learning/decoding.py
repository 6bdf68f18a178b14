"""Greedy decoding: the model writes on, each time the token that it finds likeliest."""

import numpy as np

from attentest_spec import Part, UnknownName, Unsupported
from attentest_spec.setting import Array


def greedy(part: Part, source: Array, begun: Array, length: int) -> Array:
    """Return `begun` (B, 1) continued to (B, `length`) for the sources (B, S).

    The source is encoded once; a model without `encode` and `decode` is called as a whole for
    every token.
    """
    memory = _memory(part, source)
    written = begun
    for _ in range(length - begun.shape[1]):
        if memory is None:
            output = part(source, written)
        else:
            output = part(written, memory, source, method="decode")
        likeliest = output[:, -1:].argmax(axis=-1)
        written = np.concatenate([written, likeliest], axis=1)
    return written


def _memory(part: Part, source: Array) -> Array | None:
    try:
        memory: Array = part(source, method="encode")
    except (Unsupported, UnknownName):
        return None
    return memory


def accuracies(written: Array, target: Array, pad: int) -> tuple[float, float]:
    """Return the shares of the tokens and of the sequences (B, T) that are right, pads left out."""
    kept = target != pad
    right = (written == target) | ~kept
    return float(right[kept].mean()), float(right.all(axis=1).mean())
