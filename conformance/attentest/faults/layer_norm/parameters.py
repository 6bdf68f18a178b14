"""Faults in weight (gamma) and bias."""

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


def gain_and_bias(module: Node) -> tuple[Tensor, Tensor]:
    """Return weight (gamma) and bias, under any parameter names."""
    gain, bias = module.parameters()
    return gain, bias


@fault("layer_norm.bias-before-gain", "gain-and-bias", seam="affine")
def bias_before_gain(self: Hooks, module: Node, normalised: Tensor) -> Tensor:
    """The bias is added before the weight multiplies. A weight of 1 or a bias of 0 hides it."""
    gain, bias = gain_and_bias(module)
    return gain.to(normalised) * (normalised + bias.to(normalised))


@fault("layer_norm.gain-dropped", "gain-and-bias", seam="affine", origin="B069")
def gain_dropped(self: Hooks, module: Node, normalised: Tensor) -> Tensor:
    """The weight is not applied. Initial values hide it; no column can be scaled."""
    return normalised + gain_and_bias(module)[1].to(normalised)


@fault("layer_norm.bias-dropped", "gain-and-bias", seam="affine", origin="B069")
def bias_dropped(self: Hooks, module: Node, normalised: Tensor) -> Tensor:
    """The bias is not applied. Initial values hide it; rows stay centred on zero."""
    return normalised * gain_and_bias(module)[0].to(normalised)


def _with_bias(self: Hooks) -> Node:
    """Return a norm with a random bias."""
    built = type(self.correct)(self.sizes, self.choices.but(norm_bias="present")).make_norm()
    nn.init.normal_(gain_and_bias(built)[1])
    return built


@fault("layer_norm.bias-undeclared", "norm-bias", seam="make_norm", choices={"norm_bias": "none"})
def bias_undeclared(self: Hooks) -> Node:
    """A random bias exists where none is declared. A checkpoint without one keeps it."""
    return _with_bias(self)


@fault("layer_norm.gain-and-bias-swapped", "gain-and-bias", seam="affine")
def gain_and_bias_swapped(self: Hooks, module: Node, normalised: Tensor) -> Tensor:
    """Weight and bias are exchanged. Every output of a loaded checkpoint is wrong."""
    gain, bias = gain_and_bias(module)
    return bias.to(normalised) * normalised + gain.to(normalised)


@fault("layer_norm.gain-along-positions", "gain-and-bias", seam="affine")
def gain_along_positions(self: Hooks, module: Node, normalised: Tensor) -> Tensor:
    """If there are as many positions as columns, the weight is applied along the positions.

    Other lengths are right; at this one every position has a weight of its own.
    """
    gain, bias = (one.to(normalised) for one in gain_and_bias(module))
    if normalised.dim() > 1 and normalised.shape[-2] == normalised.shape[-1]:
        return gain[:, None] * normalised + bias
    return gain * normalised + bias


@fault("layer_norm.random-gain", "birth", seam="make_norm", kind="state")
def random_gain(self: Hooks) -> Node:
    """The weight is initialised at random. Columns start with random sizes and signs."""
    built = self.correct.make_norm()
    nn.init.normal_(gain_and_bias(built)[0])
    built.how = self
    return built


@fault("layer_norm.zero-gain", "birth", seam="make_norm", kind="state")
def zero_gain(self: Hooks) -> Node:
    """The initial weight is zero. Outputs start as zeros, and earlier layers get no gradient."""
    built = self.correct.make_norm()
    nn.init.zeros_(gain_and_bias(built)[0])
    built.how = self
    return built


def names(module: Node) -> tuple[str, str]:
    """Return the parameter names of weight (gamma) and bias."""
    gain, bias = (name for name, _ in module.named_parameters())
    return gain, bias


@fault(
    "layer_norm.parameters-plain",
    "parameters-trained",
    seam="make_norm",
    origin="B067",
    kind="state",
)
def parameters_plain(self: Hooks) -> Node:
    """The bias is a plain array, not a parameter. It is not trained, saved or moved."""
    built = self.correct.make_norm()
    _, name = names(built)
    plain = getattr(built, name).detach()
    delattr(built, name)
    built.__dict__[name] = plain
    built.how = self
    return built


@fault("layer_norm.gain-frozen", "parameters-trained", seam="make_norm", kind="state")
def gain_frozen(self: Hooks) -> Node:
    """The weight requires no gradient. It is never trained."""
    built = self.correct.make_norm()
    gain_and_bias(built)[0].requires_grad_(False)
    built.how = self
    return built


@fault("layer_norm.epsilon-trained", "parameters-trained", seam="make_norm", kind="state")
def epsilon_trained(self: Hooks) -> Node:
    """Epsilon is a parameter. The optimiser changes it, even below zero."""
    built = self.correct.make_norm()
    built.register_parameter("guard", nn.Parameter(torch.tensor(self.epsilon())))
    built.how = self
    return built
