"""The loss: cross-entropy with label smoothing, without the targets that are padding (5.4)."""

from typing import Annotated

import numpy as np

from attentest_spec.generator import log_softmax
from attentest_spec.setting import Floats, Mask, Setting, Tokens, reported


@reported
def loss(
    given: Setting, output: Annotated[Floats, "B T V"], target: Annotated[Tokens, "B T"]
) -> Annotated[Floats, ""]:
    """Compare the output with the smoothed target at every step that counts.

    `output` (B, T, V) and `target` (B, T) give one number, an array of the shape (). Choices:
    `loss_input`, `smoothed_mass`, `loss_measure`, `loss_normaliser`, `loss_without_targets`.
    Source: section 5.4, and Szegedy et al. 2016, section 7.
    """
    keep = counted(given, target)
    if not keep.any():
        return np.array(np.nan if given.choices.loss_without_targets == "nan" else 0.0)
    wanted = smoothed(given, target, output.shape[-1])
    losses = cross(wanted, logarithms(given.choices.loss_input, output))
    if given.choices.loss_measure == "divergence":
        losses = losses - cross(wanted, np.log(np.where(wanted > 0, wanted, 1.0)))
    return np.asarray(losses[keep].sum() / normaliser(given, keep))


def loss_gradient(
    given: Setting, output: Annotated[Floats, "B T V"], target: Annotated[Tokens, "B T"]
) -> Annotated[Floats, "B T V"]:
    """Return the gradient (B, T, V) of :func:`loss` by the output (B, T, V), for a target (B, T).

    It is 0 where nothing counts. Choices: as the loss; `loss_measure` adds a constant alone.
    """
    keep = counted(given, target)
    wanted = smoothed(given, target, output.shape[-1])
    kind = given.choices.loss_input
    if kind == "logits":
        pulled = np.exp(log_softmax(output)) * wanted.sum(axis=-1, keepdims=True) - wanted
    elif kind == "log-probabilities":
        pulled = -wanted
    else:
        pulled = -np.divide(wanted, output, out=np.zeros_like(wanted), where=wanted > 0)
    return np.where(keep[..., None], pulled, 0.0) / max(1, normaliser(given, keep))


def counted(given: Setting, target: Annotated[Tokens, "B T"]) -> Annotated[Mask, "B T"]:
    """Say which targets (B, T) count, as (B, T): all but the padding."""
    keep: Mask = target != given.sizes.target_pad
    return keep


def normaliser(given: Setting, keep: Annotated[Mask, "B T"]) -> int:
    """Return the number that the sum is divided by, for the targets that count (B, T)."""
    numbers = {"tokens": int(keep.sum()), "sentences": len(keep), "none": 1}
    return numbers[given.choices.loss_normaliser]


def logarithms(kind: str, output: Annotated[Floats, "*rows V"]) -> Annotated[Floats, "*rows V"]:
    """Return the logarithms of the probabilities for an output (.., V) of `kind`, as (.., V)."""
    if kind == "logits":
        return log_softmax(output)
    if kind == "log-probabilities":
        return output
    with np.errstate(divide="ignore", invalid="ignore"):  # minus infinity at 0, NaN below
        result: Floats = np.log(output)
    return result


def smoothed(
    given: Setting, target: Annotated[Tokens, "B T"], vocabulary: int
) -> Annotated[Floats, "B T V"]:
    """Return the smoothed distributions (B, T, V) of the targets (B, T).

    Choice: `smoothed_mass`. Source: section 5.4.
    """
    rate, option = given.sizes.smoothing, given.choices.smoothed_mass
    words = np.arange(vocabulary)
    chosen = words == target[..., None]
    shared = np.ones_like(chosen) if option == "all-words" else ~chosen
    if option == "other-real-words":
        shared = shared & (words != given.sizes.target_pad)
    parts = np.maximum(shared.sum(axis=-1, keepdims=True), 1)
    result: Floats = (1.0 - rate) * chosen + rate * shared / parts
    return result


def cross(
    wanted: Annotated[Floats, "B T V"], logs: Annotated[Floats, "B T V"]
) -> Annotated[Floats, "B T"]:
    """Return minus the mean of the logarithms (B, T, V) under the distributions (B, T, V), (B, T).

    A word without a share has no term, whatever its logarithm is.
    """
    terms = np.multiply(wanted, logs, out=np.zeros_like(wanted), where=wanted > 0)
    result: Floats = -terms.sum(axis=-1)
    return result
