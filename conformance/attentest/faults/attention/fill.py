"""Faults in the fill of masked scores."""

import math

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask


@fault("attention.fill-nearly-zero", "masked-weights-zero", seam="mask_scores", origin="B005")
def fill_nearly_zero(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The fill is -1e-9, an exponent with the wrong sign, where -1e9 was meant.

    A masked key weighs as much as any key with the score 0.
    """
    return raw if mask is None else raw.masked_fill(~mask, -1e-9)


@fault("attention.mask-added-as-ones", "masked-weights-zero", seam="mask_scores", origin="B003")
def mask_added_as_ones(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """A mask of zeros and ones is added to the scores. Nothing is masked."""
    return raw if mask is None else raw + mask


@fault("attention.mask-multiplied", "masked-weights-zero", seam="mask_scores", origin="B006")
def mask_multiplied(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """Scores are multiplied by a mask of zeros and ones before the softmax.

    A masked key has the score 0, which is no small score.
    """
    return raw if mask is None else raw * mask


@fault(
    "attention.fill-minus-infinity-times-zero",
    "masked-keys-ignored",
    seam="mask_scores",
    origin="B008",
)
def fill_minus_infinity_times_zero(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The additive mask is (1 - mask) * -inf, and 0 * -inf is not a number.

    Every kept key becomes NaN, and with it every output.
    """
    return raw if mask is None else raw + (1.0 - mask.to(raw.dtype)) * -math.inf


@fault(
    "attention.fill-plus-infinity",
    "masked-keys-ignored",
    seam="mask_scores",
    origin="C: the mask is plus infinity",
)
def fill_plus_infinity(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """Plus infinity is added to masked scores. Every row with a masked key becomes NaN."""
    return raw if mask is None else raw.masked_fill(~mask, math.inf)


@fault("attention.fill-ten-thousand", "masking-exact", seam="mask_scores", origin="B007")
def fill_ten_thousand(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The fill is -1e4, to fit float16. A masked key wins once other scores fall below it."""
    return raw if mask is None else raw.masked_fill(~mask, -1e4)


@fault("attention.fill-hundred-thousand", "masking-exact", seam="mask_scores", origin="B007")
def fill_hundred_thousand(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The fill is -1e5. A masked key wins the softmax once other scores fall below it."""
    return raw if mask is None else raw.masked_fill(~mask, -1e5)


@fault("attention.fill-added", "masking-exact", seam="mask_scores")
def fill_added(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """-1e4 is added to masked scores, which keep their own size.

    A masked key that fits better by more than that wins the softmax.
    """
    return raw if mask is None else raw - 1e4 * (~mask).to(raw.dtype)


@fault(
    "attention.fill-other-than-declared",
    "masking-exact",
    seam="mask_scores",
    choices={"mask_fill": -1e4},
)
def fill_other_than_declared(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """A fill of -1e4 is declared, but masking is exact. Comparisons by the declaration mislead."""
    return raw if mask is None else raw.masked_fill(~mask, -math.inf)


@fault("attention.fill-minus-thirty", "gradient-to-masked-keys", seam="mask_scores")
def fill_minus_thirty(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The fill is -30: a weight of 1e-13, not 0. Masked keys are still trained a little."""
    return raw if mask is None else raw.masked_fill(~mask, -30.0)


@fault(
    "attention.fill-beyond-half", "half-precision", seam="mask_scores", origin="B124", kind="loud"
)
def fill_beyond_half(self: Hooks, raw: Tensor, mask: Mask) -> Tensor:
    """The fill is -1e9, beyond the range of float16. It raises in float16 alone."""
    return raw if mask is None else raw.masked_fill(~mask, -1e9)
