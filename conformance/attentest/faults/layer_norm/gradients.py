"""Faults in the gradients, and in what is overwritten."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.layer_norm.shared import gain_and_bias
from attentest.specimens import Node, Seams


@fault(
    "layer_norm.deviation-constant-in-backward",
    clause="layer_norm.gradient",
    wrong="The variance is detached from the graph.",
    effect="Values are right; the gradient misses what scaling takes away.",
    kind="gradient",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    return self.sound.variance(centred.detach())


@fault(
    "layer_norm.mean-constant-in-backward",
    clause="layer_norm.gradient",
    wrong="The mean is detached from the graph.",
    effect="Values are right; the gradient has a mean that it should not have.",
    kind="gradient",
)
def mean(self: Seams, x: Tensor) -> Tensor:
    return self.sound.mean(x.detach())


@fault(
    "layer_norm.gain-detached",
    clause="layer_norm.gradient",
    wrong="The gain is detached from the graph.",
    effect="Values are right; the gain stays as it was born.",
    kind="gradient",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    gain, bias = gain_and_bias(module)
    return gain.detach().to(normalised) * normalised + bias.to(normalised)


@fault(
    "layer_norm.centred-in-place",
    clause="layer_norm.input-untouched",
    wrong="The mean is taken out of the caller's own array.",
    effect="The residual path adds a centred input.",
)
def centre(self: Seams, x: Tensor, mean: Tensor) -> Tensor:
    return x.data.sub_(mean) if x.requires_grad else x.sub_(mean)


@fault(
    "layer_norm.output-written-back",
    clause="layer_norm.input-untouched",
    wrong="The output is also written into the input.",
    effect="Whoever held the input holds the output.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    result = self.sound.layer_norm(module, x)
    x.data.copy_(result)
    return result
