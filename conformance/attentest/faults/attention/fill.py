"""Faults in what masked scores are filled with."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math

from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Seams


@fault(
    "attention.fill-nearly-zero",
    clause="attention.masked-weights-zero",
    origin="B005",
    wrong="The fill is -1e-9, an exponent with the wrong sign, where -1e9 was meant.",
    effect="A masked key weighs as much as any key with the score 0.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -1e-9)


@fault(
    "attention.mask-added-as-ones",
    clause="attention.masked-weights-zero",
    origin="B003",
    wrong="A mask of zeros and ones is added to the scores.",
    effect="Nothing is masked; kept keys gain 1 in their score.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw + mask


@fault(
    "attention.mask-multiplied",
    clause="attention.masked-weights-zero",
    origin="B006",
    wrong="Scores are multiplied by a mask of zeros and ones before the softmax.",
    effect="A masked key has the score 0, which is no small score.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw * mask


@fault(
    "attention.fill-minus-infinity-times-zero",
    clause="attention.masked-keys-ignored",
    origin="B008",
    wrong="The additive mask is (1 - mask) * -inf, and 0 * -inf is not a number.",
    effect="Every kept key becomes NaN, and with it every output.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw + (1.0 - mask.to(raw.dtype)) * -math.inf


@fault(
    "attention.fill-plus-infinity",
    clause="attention.masked-keys-ignored",
    origin="C: the mask is plus infinity",
    wrong="Plus infinity is added to masked scores.",
    effect="Every row with a masked key becomes NaN.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, math.inf)


@fault(
    "attention.fill-ten-thousand",
    clause="attention.masking-exact",
    origin="B007",
    wrong="The fill is -1e4, chosen to fit into float16.",
    effect="Once trained scores fall below it, a masked key wins the softmax.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -1e4)


@fault(
    "attention.fill-hundred-thousand",
    clause="attention.masking-exact",
    origin="B007",
    wrong="The fill is -1e5.",
    effect="Once trained scores fall below it, a masked key wins the softmax.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -1e5)


@fault(
    "attention.fill-added",
    clause="attention.masking-exact",
    wrong="-1e4 is added to masked scores, which keep their own size.",
    effect="A masked key that fits better by more than that wins the softmax.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw - 1e4 * (~mask).to(raw.dtype)


@fault(
    "attention.fill-other-than-declared",
    clause="attention.masking-exact",
    origin="own",
    wrong="A fill of -1e4 is declared, and masking is exact.",
    effect="The declaration is wrong: a comparison by it misleads.",
    choices={"mask_fill": -1e4},
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -math.inf)


@fault(
    "attention.fill-minus-thirty",
    clause="attention.gradient-to-masked-keys",
    wrong="The fill is -30, which looks like never and is one in ten trillion.",
    effect="What is masked is still seen and trained, a little.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -30.0)


@fault(
    "attention.fill-beyond-half",
    clause="attention.half-precision",
    origin="B124",
    wrong="The fill is -1e9, which cannot be written into float16.",
    effect="It raises in float16, and in no other precision.",
    kind="loud",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -1e9)
