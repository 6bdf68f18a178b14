"""Faults in the activation between the two maps."""

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault(
    "feed_forward.argument-ignored",
    "activation",
    seam="activation",
    origin="B080",
    choices={"activation": "gelu"},
)
def argument_ignored(self: Hooks, x: Tensor) -> Tensor:
    """The activation is always ReLU. It differs from GELU around zero."""
    return x.clamp(min=0)


@fault("feed_forward.gelu-by-tanh", "activation", seam="activation", choices={"activation": "gelu"})
def gelu_by_tanh(self: Hooks, x: Tensor) -> Tensor:
    """GELU is approximated by tanh. Hidden units are off by up to 5e-4."""
    return functional.gelu(x, approximate="tanh")


@fault(
    "feed_forward.square-missing",
    "activation",
    seam="activation",
    choices={"activation": "relu-squared"},
)
def square_missing(self: Hooks, x: Tensor) -> Tensor:
    """The ReLU is not squared. Large units are too small, and small ones too large."""
    return x.clamp(min=0)


@fault(
    "feed_forward.square-of-both-signs",
    "activation",
    seam="activation",
    choices={"activation": "relu-squared"},
)
def square_of_both_signs(self: Hooks, x: Tensor) -> Tensor:
    """Negative units are squared as well. No unit is ever off."""
    return x * x


@fault("feed_forward.leaky", "activation", seam="activation")
def leaky(self: Hooks, x: Tensor) -> Tensor:
    """The ReLU keeps a hundredth of negative inputs. Units are never fully off."""
    return functional.leaky_relu(x, 0.01)


@fault("feed_forward.no-activation", "activation-between", seam="activation", origin="B078")
def no_activation(self: Hooks, x: Tensor) -> Tensor:
    """No activation is applied between the linear maps. Two linear maps are as good as one."""
    return x


@fault("feed_forward.mean-slope", "activation-between", seam="activation")
def mean_slope(self: Hooks, x: Tensor) -> Tensor:
    """Every unit is halved, the mean slope of a ReLU. The hidden layer is linear."""
    return 0.5 * x


@fault(
    "feed_forward.sigmoid-overflows",
    "large-inputs",
    seam="activation",
    choices={"activation": "silu"},
)
def sigmoid_overflows(self: Hooks, x: Tensor) -> Tensor:
    """The sigmoid is exp(x) / (1 + exp(x)). Large inputs give NaN."""
    return x * torch.exp(x) / (1.0 + torch.exp(x))


@fault("feed_forward.relu-with-a-ceiling", "large-inputs", seam="activation")
def relu_with_a_ceiling(self: Hooks, x: Tensor) -> Tensor:
    """The ReLU is capped at 100. Ordinary activations hide it."""
    return x.clamp(min=0, max=100)


@fault(
    "feed_forward.activation-lost-in-copies",
    "activation-survives-copies",
    seam="feed_forward",
    origin="B080",
    kind="state",
)
def activation_lost_in_copies(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The activation is kept outside what a copy takes along, and falls back to GELU.

    Other numbers come out of the same weights after a deep copy or a pickle.
    """
    # A copy carries the identity of the original, which is not its own.
    if module.__dict__.setdefault("known_as", id(module)) == id(module):
        return self.correct.feed_forward(module, x)
    return self.contract(module, functional.gelu(self.expand(module, x)))
