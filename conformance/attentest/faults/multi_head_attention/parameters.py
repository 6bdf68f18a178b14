"""Faults in which parameters there are, and what a call does to them."""

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


def _with_biases(self: Hooks) -> Node:
    present = self.choices.but(projection_bias="present")
    return type(self.correct)(self.sizes, present).make_multi_head_attention()


@fault(
    "multi_head_attention.bias-undeclared",
    "projection-bias",
    seam="make_multi_head_attention",
    choices={"projection_bias": "none"},
)
def bias_undeclared(self: Hooks) -> Node:
    """The projections have biases, random at birth, where none are declared.

    A checkpoint without them leaves them as they are.
    """
    built = _with_biases(self)
    for values in built.parameters():
        if values.dim() == 1:
            nn.init.normal_(values)
    return built


@fault(
    "multi_head_attention.bias-undeclared-and-zero",
    "parameter-count",
    seam="make_multi_head_attention",
    choices={"projection_bias": "none"},
    kind="state",
)
def bias_undeclared_and_zero(self: Hooks) -> Node:
    """The projections have biases, zero at birth, where none are declared.

    Everything fits until the first step of training.
    """
    return _with_biases(self)


@fault(
    "multi_head_attention.projection-unused",
    "parameter-count",
    seam="make_multi_head_attention",
    kind="state",
)
def projection_unused(self: Hooks) -> Node:
    """A fifth projection is made and never used.

    It is saved, counted and decayed, and a strict load elsewhere refuses it.
    """
    built = self.correct.make_multi_head_attention()
    built.how = self
    built.extra = self.make_linear(self.sizes.d_model, self.sizes.d_model)
    return built


@fault(
    "multi_head_attention.weights-renormalised-in-place",
    "parameters-round-trip",
    seam="project",
    kind="state",
)
def weights_renormalised_in_place(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Every call shrinks the output's weight in place to a largest row of length 1.

    What is saved is not what was loaded, and evaluating a model changes it.
    """
    if name == "output":
        with torch.no_grad():
            for values in module.output.parameters():
                values.div_(values.norm().clamp(min=1.0))
    return self.correct.project(module, name, x)


@fault(
    "multi_head_attention.query-and-key-one-matrix",
    "parameters-round-trip",
    seam="make_multi_head_attention",
    kind="state",
    models=("plain",),
)
def query_and_key_one_matrix(self: Hooks) -> Node:
    """Query and key projections are one module.

    Whichever is loaded last is both, and they are trained as one.
    """
    built = self.correct.make_multi_head_attention()
    built.how = self
    built.query = built.key
    return built


@fault(
    "multi_head_attention.weights-rounded-in-place",
    "parameters-round-trip",
    seam="multi_head_attention",
    kind="state",
)
def weights_rounded_in_place(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Every call rounds the weights themselves to float16, to save time.

    A model loses its digits by being used, and what is saved is not what was loaded.
    """
    with torch.no_grad():
        for values in module.parameters():
            values.copy_(values.half())
    return self.correct.multi_head_attention(module, query, key, value, mask)
