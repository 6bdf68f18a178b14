"""Faults in the gradients, and in-place changes."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.layer_norm.parameters import gain_and_bias
from attentest.faults.reference_models import Hooks, Node


@fault("layer_norm.deviation-constant-in-backward", "gradient", seam="variance", kind="gradient")
def deviation_constant_in_backward(self: Hooks, centred: Tensor) -> Tensor:
    """The variance is detached from the graph. Values are right; the gradient is incomplete."""
    return self.correct.variance(centred.detach())


@fault("layer_norm.mean-constant-in-backward", "gradient", seam="mean", kind="gradient")
def mean_constant_in_backward(self: Hooks, x: Tensor) -> Tensor:
    """The mean is detached from the graph. Values are right; the gradient is incomplete."""
    return self.correct.mean(x.detach())


@fault("layer_norm.gain-detached", "gradient", seam="affine", kind="gradient")
def gain_detached(self: Hooks, module: Node, normalised: Tensor) -> Tensor:
    """The weight is detached from the graph. Values are right; the weight is never trained."""
    gain, bias = gain_and_bias(module)
    return gain.detach().to(normalised) * normalised + bias.to(normalised)


@fault("layer_norm.centred-in-place", "input-untouched", seam="centre")
def centred_in_place(self: Hooks, x: Tensor, mean: Tensor) -> Tensor:
    """The mean is subtracted from the caller's own array.

    The residual path adds a centred input.
    """
    return x.data.sub_(mean) if x.requires_grad else x.sub_(mean)


@fault("layer_norm.output-written-back", "input-untouched", seam="layer_norm")
def output_written_back(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The output is also written into the input. Other holders of the input see the output."""
    result = self.correct.layer_norm(module, x)
    x.data.copy_(result)
    return result
