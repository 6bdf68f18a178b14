"""Faults in what is returned: shapes, and the weights beside the output."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Mask, Seams

Answer = tuple[Tensor, Tensor]


@fault(
    "attention.scores-returned",
    clause="attention.weights-formula",
    wrong="The masked scores are returned in the place of the weights.",
    effect="The output is right; plots of attention show numbers of any size.",
)
def returned_weights(self: Seams, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    return raw


@fault(
    "attention.output-squeezed",
    clause="attention.shapes",
    origin="B036",
    wrong="The output is squeezed without naming an axis.",
    effect="One sample, one head or one query drops an axis, at inference alone.",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    return self.sound.mix(weights, value).squeeze()


@fault(
    "attention.output-single-precision",
    clause="attention.shapes",
    wrong="The output is returned in float32 whatever came in.",
    effect="What follows computes in another precision, or raises for mixed ones.",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    return self.sound.mix(weights, value).float()


@fault(
    "attention.weights-without-head-axis",
    clause="attention.shapes",
    origin="D",
    wrong="The weights are averaged over the heads before they are returned.",
    effect="A caller that reads weights by head reads another axis.",
)
def returned_weights(self: Seams, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    return used.mean(dim=1)


@fault(
    "attention.weights-logarithms",
    clause="attention.weights-nonnegative",
    wrong="The logarithms of the weights are returned.",
    effect="The output is right; every weight that is read is negative.",
)
def returned_weights(self: Seams, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    return used.clamp(min=1e-30).log()


@fault(
    "attention.unmasked-weights-returned",
    clause="attention.weights-used",
    wrong="The weights that are returned are those before the mask.",
    effect="The output is right; a plot shows attention to pads and to the future.",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    output, _ = self.sound.attention(module, query, key, value, mask)
    return output, self.sound.attention(module, query, key, value, None)[1]


@fault(
    "attention.mean-weights-returned",
    clause="attention.weights-used",
    wrong="Every head returns the mean weights of all heads.",
    effect="The output is right; all heads look alike in a plot.",
)
def returned_weights(self: Seams, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    return used.mean(dim=1, keepdim=True).expand_as(used)
