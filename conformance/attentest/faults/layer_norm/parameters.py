"""Faults in gain and bias."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.layer_norm.shared import gain_and_bias
from attentest.specimens import Node, Seams


@fault(
    "layer_norm.bias-before-gain",
    clause="layer_norm.gain-and-bias",
    wrong="The bias is added before the gain multiplies.",
    effect="Invisible while the gain is 1 or the bias 0.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    gain, bias = gain_and_bias(module)
    return gain.to(normalised) * (normalised + bias.to(normalised))


@fault(
    "layer_norm.gain-dropped",
    clause="layer_norm.gain-and-bias",
    origin="B069",
    wrong="The gain is not applied.",
    effect="Invisible at birth; a column can never be turned down.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    return normalised + gain_and_bias(module)[1].to(normalised)


@fault(
    "layer_norm.bias-dropped",
    clause="layer_norm.gain-and-bias",
    origin="B069",
    wrong="The bias is not applied.",
    effect="Invisible at birth; rows stay centred on zero.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    return normalised * gain_and_bias(module)[0].to(normalised)


def _with_bias(self: Seams) -> Node:
    """Return a norm with a bias, random at birth."""
    built = type(self.sound)(self.sizes, self.choices.but(norm_bias="present")).make_norm()
    nn.init.normal_(gain_and_bias(built)[1])
    return built


@fault(
    "layer_norm.bias-undeclared",
    clause="layer_norm.norm-bias",
    wrong="The norm has a bias, random at birth, where none is declared.",
    effect="A checkpoint without one leaves it as it is.",
    choices={"norm_bias": "none"},
)
def make_norm(self: Seams) -> Node:
    return _with_bias(self)


@fault(
    "layer_norm.gain-and-bias-swapped",
    clause="layer_norm.gain-and-bias",
    wrong="The two parameters have changed places.",
    effect="Every output of a loaded checkpoint is wrong.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    gain, bias = gain_and_bias(module)
    return bias.to(normalised) * normalised + gain.to(normalised)


@fault(
    "layer_norm.gain-along-positions",
    clause="layer_norm.gain-and-bias",
    wrong="Where there are as many positions as columns, the gain is laid along the positions.",
    effect="Other lengths are right; at this one every position has a gain of its own.",
)
def affine(self: Seams, module: Node, normalised: Tensor) -> Tensor:
    gain, bias = (one.to(normalised) for one in gain_and_bias(module))
    if normalised.dim() > 1 and normalised.shape[-2] == normalised.shape[-1]:
        return gain[:, None] * normalised + bias
    return gain * normalised + bias


@fault(
    "layer_norm.random-gain",
    clause="layer_norm.birth",
    wrong="A loop that initialises every parameter has also drawn the gain.",
    effect="Columns start at random sizes and signs.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    nn.init.normal_(gain_and_bias(built)[0])
    built.how = self
    return built


@fault(
    "layer_norm.zero-gain",
    clause="layer_norm.birth",
    wrong="The gain is born as zero.",
    effect="Every row starts as zeros, and nothing before it gets a gradient.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    nn.init.zeros_(gain_and_bias(built)[0])
    built.how = self
    return built


def names(module: Node) -> tuple[str, str]:
    """Return what the specimen calls gain and bias."""
    gain, bias = (name for name, _ in module.named_parameters())
    return gain, bias


@fault(
    "layer_norm.parameters-plain",
    clause="layer_norm.parameters-trained",
    origin="B067",
    wrong="The bias is held as a plain array, not as a parameter.",
    effect="It is never trained, not saved and not moved.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    _, name = names(built)
    plain = getattr(built, name).detach()
    delattr(built, name)
    built.__dict__[name] = plain
    built.how = self
    return built


@fault(
    "layer_norm.gain-frozen",
    clause="layer_norm.parameters-trained",
    wrong="The gain is a parameter that asks for no gradient.",
    effect="It stays as it was born.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    gain_and_bias(built)[0].requires_grad_(False)
    built.how = self
    return built


@fault(
    "layer_norm.epsilon-trained",
    clause="layer_norm.parameters-trained",
    wrong="Epsilon is a parameter too.",
    effect="The optimiser moves it, below zero if it likes.",
    kind="state",
)
def make_norm(self: Seams) -> Node:
    built = self.sound.make_norm()
    built.register_parameter("guard", nn.Parameter(torch.tensor(self.epsilon())))
    built.how = self
    return built
