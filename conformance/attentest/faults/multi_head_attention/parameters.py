"""Faults in which parameters there are, and what a call does to them."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


def _with_biases(self: Seams) -> Node:
    present = self.choices.but(projection_bias="present")
    return type(self.sound)(self.sizes, present).make_multi_head_attention()


@fault(
    "multi_head_attention.bias-undeclared",
    clause="multi_head_attention.projection-bias",
    wrong="The projections have biases, random at birth, where none are declared.",
    effect="A checkpoint without them leaves them as they are.",
    choices={"projection_bias": "none"},
)
def make_multi_head_attention(self: Seams) -> Node:
    built = _with_biases(self)
    for values in built.parameters():
        if values.dim() == 1:
            nn.init.normal_(values)
    return built


@fault(
    "multi_head_attention.bias-undeclared-and-zero",
    clause="multi_head_attention.parameter-count",
    wrong="The projections have biases, zero at birth, where none are declared.",
    effect="Everything fits until the first step of training.",
    choices={"projection_bias": "none"},
    kind="state",
)
def make_multi_head_attention(self: Seams) -> Node:
    return _with_biases(self)


@fault(
    "multi_head_attention.projection-unused",
    clause="multi_head_attention.parameter-count",
    wrong="A fifth projection is made and never used.",
    effect="It is saved, counted and decayed, and a strict load elsewhere refuses it.",
    kind="state",
)
def make_multi_head_attention(self: Seams) -> Node:
    built = self.sound.make_multi_head_attention()
    built.how = self
    built.extra = self.make_linear(self.sizes.d_model, self.sizes.d_model)
    return built


@fault(
    "multi_head_attention.weights-renormalised-in-place",
    clause="multi_head_attention.parameters-round-trip",
    wrong="Every call shrinks the output's weight in place to a largest row of length 1.",
    effect="What is saved is not what was loaded, and evaluating a model changes it.",
    kind="state",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    if name == "output":
        with torch.no_grad():
            for values in module.output.parameters():
                values.div_(values.norm().clamp(min=1.0))
    return self.sound.project(module, name, x)


@fault(
    "multi_head_attention.query-and-key-one-matrix",
    clause="multi_head_attention.parameters-round-trip",
    wrong="Query and key projections are one module.",
    effect="Whichever is loaded last is both, and they are trained as one.",
    specimens=("plain",),
    kind="state",
)
def make_multi_head_attention(self: Seams) -> Node:
    built = self.sound.make_multi_head_attention()
    built.how = self
    built.query = built.key
    return built


@fault(
    "multi_head_attention.weights-rounded-in-place",
    clause="multi_head_attention.parameters-round-trip",
    wrong="Every call rounds the weights themselves to float16, to save time.",
    effect="A model loses its digits by being used, and what is saved is not what was loaded.",
    kind="state",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    with torch.no_grad():
        for values in module.parameters():
            values.copy_(values.half())
    return self.sound.multi_head_attention(module, query, key, value, mask)
