"""Faults in the set of parameters, and calls that change them."""

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
    """Random biases exist where none are declared. A checkpoint without them keeps them."""
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
    """Biases of zero exist where none are declared. The first training step differs."""
    return _with_biases(self)


@fault(
    "multi_head_attention.projection-unused",
    "parameter-count",
    seam="make_multi_head_attention",
    kind="state",
)
def projection_unused(self: Hooks) -> Node:
    """A fifth projection is made and never used. It is saved and counted."""
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
    """Query and key projections are one module. The one loaded last replaces both."""
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
