"""The loss: cross-entropy over the targets that are no pads, and what it asks of the output."""

import numpy as np

from attentest_spec.generator import log_softmax
from attentest_spec.setting import Array, Floats


def cross_entropy(
    output: Array, target: Array, kind: str, pad: int, smoothing: float = 0.0
) -> tuple[float, Floats]:
    """Return the mean loss per target that is no pad, and its gradient by `output`.

    `output` (B, T, V) is what a generator of the `kind` (an option of the choice `output`) returns,
    `target` (B, T) the tokens that were wanted. With `smoothing` s the wanted distribution gives
    1 - s to the target and spreads s evenly over the vocabulary (section 5.4). A probability that
    rounded to zero counts as the smallest normal number of its precision.
    """
    given = output.astype(np.float64)
    wanted, kept = _wanted(target, given.shape[-1], pad, smoothing)
    share = kept[..., None] / max(1, int(kept.sum()))
    if kind == "logits":
        logs = log_softmax(given)
        gradient = np.exp(logs) - wanted
    elif kind == "log-probabilities":
        logs, gradient = given, -wanted
    else:
        bounded = np.maximum(given, np.finfo(output.dtype).tiny)
        logs, gradient = np.log(bounded), -wanted / bounded
    # A target that is not wanted at all costs nothing, even where its logarithm is infinite.
    costs = np.where(wanted > 0, wanted * np.where(wanted > 0, logs, 0.0), 0.0)
    return float(-(share * costs).sum()), share * gradient


def _wanted(target: Array, width: int, pad: int, smoothing: float) -> tuple[Floats, Array]:
    """Return the wanted distributions (B, T, V), and where a target (B, T) is no pad."""
    wanted = np.full((*target.shape, width), smoothing / width)
    np.put_along_axis(wanted, target[..., None], 1.0 - smoothing + smoothing / width, axis=-1)
    return wanted, target != pad
