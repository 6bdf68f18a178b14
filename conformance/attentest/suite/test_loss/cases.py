"""Losses, outputs and targets that the checks of this chapter share."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats
from attentest.testing.assertions import finite, matches, same_shape
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.generator import normalised
from attentest_spec.loss import counted, normaliser, smoothed
from attentest_spec.setting import Array, Floats, Mask, Setting, Tokens

COMPONENT = "loss"

RATES = (0.1, 0.0, 0.3)
"""Rates of label smoothing."""

VOCABULARIES = (7, 5, 13)


def draw_sizes(
    draw: Draw,
    *,
    rates: Sequence[float] = RATES,
    pads: Sequence[int] = (3, 0, 1),
    vocabulary: int = 0,
) -> Sizes:
    """Draw sizes of a loss: the target's vocabulary, its pad id and the smoothing."""
    words = vocabulary or draw.choose(VOCABULARIES)
    sizes = Sizes(
        source_vocabulary=words,
        target_vocabulary=words,
        target_pad=draw.choose(draw.pads(pads)),
        source_pad=draw.choose((2, 4)),  # where the pad id is fixed, it is replaced below
        smoothing=draw.choose(rates),
    )
    fitted = draw.subject.limits.fitted(sizes)
    if fitted.target_pad >= fitted.target_vocabulary:
        raise Absent(f"the pad id {fitted.target_pad} is no word of a small vocabulary")
    return fitted


def smoothing_rates(subject: Subject) -> tuple[float, ...]:
    """Return rates above 0; absent where the loss has no label smoothing."""
    if subject.limits.smoothing == 0:
        raise Absent(f"{subject.name} has no label smoothing")
    return tuple(rate for rate in RATES if rate > 0)


def require_padding(subject: Subject) -> None:
    """End as absent where the loss counts every target."""
    if not subject.limits.padded_targets:
        raise Absent(f"{subject.name} counts every target")


def output_of(
    subject: Subject, logits: Annotated[Floats, "*rows V"]
) -> Annotated[Floats, "*rows V"]:
    """Return logits (.., V) as the output of a model, of the kind that the loss takes."""
    return normalised(subject.choices.loss_input, logits)


def scales(subject: Subject, *wanted: float) -> tuple[float, ...]:
    """Return 1.0 and the `wanted` magnitudes of logits whose output has no probability of 0.

    In half precision those of large logits round to it, and their logarithms are infinite.
    """
    rounds = subject.precision in HALF_PRECISIONS and subject.choices.loss_input == "probabilities"
    return (1.0, *(one for one in wanted if one <= 1.0 or not rounds))


def draw_output(
    draw: Draw, sizes: Sizes, batch: int, length: int, *, scale: float = 1.0, precision: str = ""
) -> Annotated[Floats, "B T V"]:
    """Draw the output (B, T, V) of a model."""
    logits = draw.floats(batch, length, sizes.target_vocabulary, scale=scale, precision=precision)
    return cast(output_of(draw.subject, logits), precision or draw.subject.precision)


def draw_target(draw: Draw, sizes: Sizes, batch: int, length: int) -> Annotated[Tokens, "B T"]:
    """Draw targets (B, T): real words, of which each sequence keeps at least one.

    The rest is padding on one side or anywhere; each sequence longer than one has some. A loss that
    counts every target is given none.
    """
    words = draw.tokens(batch, length, sizes.target_vocabulary, sizes.target_pad)
    if not draw.subject.limits.padded_targets:
        return words
    style = draw.choose(("right", "anywhere", "left"))
    if style == "anywhere":
        keep = draw.keep(batch, length)
    else:
        lengths = draw.rng.integers(1, max(length, 2), size=(batch, 1))
        keep = np.arange(length) < lengths
        keep = keep if style == "right" else keep[:, ::-1]
    return np.where(keep, words, sizes.target_pad)


def draw_case(
    subject: Subject,
    draw: Draw,
    *,
    sizes: Sizes | None = None,
    scale: float = 1.0,
    precision: str = "",
    length: int = 0,
) -> tuple[Probe, Floats, Tokens]:
    """Build a loss, and draw an output (B, T, V) and a target (B, T) for it."""
    sizes = sizes or draw_sizes(draw)
    batch, steps = draw.batch(), length or draw.length()
    probe = subject.part(COMPONENT, sizes, precision=precision)
    output = draw_output(draw, sizes, batch, steps, scale=scale, precision=precision)
    return probe, output, draw_target(draw, sizes, batch, steps)


def check_loss(probe: Probe, output: Floats, target: Tokens, *, what: str = "loss") -> Array:
    """Return the loss; demanded to be one finite number, that of the reference.

    The output has the shape (B, T, V) and the target (B, T).
    """
    found = probe.output(output, target)
    same_shape(found, (), what=what)
    finite(found, what=what)
    matches(probe, output, target, actual=found, what=what)
    return found


def setting(probe: Probe) -> Setting:
    """Return the setting of the reference."""
    return Setting(probe.sizes, probe.subject.choices)


def keeping(probe: Probe, target: Annotated[Tokens, "B T"]) -> Annotated[Mask, "B T"]:
    """Say which targets (B, T) count, as (B, T)."""
    return counted(setting(probe), target)


def number(probe: Probe, target: Annotated[Tokens, "B T"]) -> int:
    """Return the number that the sum over targets (B, T) is divided by."""
    return normaliser(setting(probe), keeping(probe, target))


def to_logits(
    kind: str, output: Annotated[Floats, "B T V"], pulled: Annotated[Floats, "B T V"]
) -> Annotated[Floats, "B T V"]:
    """Return the gradient (B, T, V) of the logits, from one (B, T, V) of an output (B, T, V).

    A loss that takes log-probabilities may normalise them once more: along what a softmax gives
    both are the same function, and their gradients with respect to the logits are equal.
    """
    if kind == "logits":
        return pulled
    rows = np.exp(output) if kind == "log-probabilities" else output
    inner = pulled if kind == "log-probabilities" else rows * pulled
    result: Floats = inner - rows * inner.sum(axis=-1, keepdims=True)
    return result


def closed_form(
    probe: Probe, output: Annotated[Floats, "B T V"], target: Annotated[Tokens, "B T"]
) -> Annotated[Floats, "B T V"]:
    """Return the gradient (B, T, V) of the logits: (p - q) / n at targets that count.

    The output has the shape (B, T, V) and the target (B, T).
    """
    kind = probe.subject.choices.loss_input
    rows = normalised("probabilities", output) if kind == "logits" else output
    rows = np.exp(output) if kind == "log-probabilities" else rows
    wanted = smoothed(setting(probe), target, output.shape[-1])
    keep = keeping(probe, target)[..., None]
    result: Floats = np.where(keep, rows - wanted, 0.0) / number(probe, target)
    return result


def pulled_back(
    probe: Probe, output: Annotated[Floats, "B T V"], target: Annotated[Tokens, "B T"]
) -> Annotated[Floats, "B T V"]:
    """Return the gradient (B, T, V) of the output (B, T, V) for targets (B, T)."""
    gradient = probe.vjp((output, target), np.array(1.0)).inputs[0]
    if gradient is None:
        return np.zeros_like(output)
    same_shape(gradient, output.shape, what="gradient of the output")
    finite(gradient, what="gradient of the output")
    return as_floats(gradient)
