"""Faults in the results: the shape of the output, and the returned weights."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Answer, Hooks, Mask, Node


@fault("attention.scores-returned", "weights-formula", seam="returned_weights")
def scores_returned(self: Hooks, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    """The masked scores are returned instead of the weights.

    The output is right; plots are wrong.
    """
    return raw


@fault("attention.output-squeezed", "shapes", seam="mix", origin="B036")
def output_squeezed(self: Hooks, weights: Tensor, value: Tensor) -> Tensor:
    """The output is squeezed without naming an axis.

    One sample, one head or one query drops an axis, at inference alone.
    """
    return self.correct.mix(weights, value).squeeze()


@fault("attention.output-single-precision", "shapes", seam="mix")
def output_single_precision(self: Hooks, weights: Tensor, value: Tensor) -> Tensor:
    """The output is always float32. Later layers compute in another precision, or raise."""
    return self.correct.mix(weights, value).float()


@fault("attention.weights-without-head-axis", "shapes", seam="returned_weights", origin="D")
def weights_without_head_axis(self: Hooks, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    """The weights are averaged over the heads before they are returned.

    A caller that reads weights by head reads another axis.
    """
    return used.mean(dim=1)


@fault("attention.weights-logarithms", "weights-nonnegative", seam="returned_weights")
def weights_logarithms(self: Hooks, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    """The logarithms of the weights are returned. The output is right; all weights are negative."""
    return used.clamp(min=1e-30).log()


@fault("attention.unmasked-weights-returned", "weights-used", seam="attention")
def unmasked_weights_returned(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    """The weights before the mask are returned. The output is right; plots show the future."""
    output, _ = self.correct.attention(module, query, key, value, mask)
    return output, self.correct.attention(module, query, key, value, None)[1]


@fault("attention.mean-weights-returned", "weights-used", seam="returned_weights")
def mean_weights_returned(self: Hooks, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    """Every head returns the mean weights of all heads. Plots show all heads alike."""
    return used.mean(dim=1, keepdim=True).expand_as(used)
