"""Faults in what passes between positions and sentences besides the mask."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "encoder.positions-in-every-layer",
    clause="encoder.permutation-law",
    wrong="Positions are added again to queries and keys in every layer.",
    effect="Order enters where the paper has none.",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.self_attend(module, x, mask)
    place = torch.arange(x.shape[1], device=x.device).to(x)[:, None].sin()
    attend = self.sublayer_of(module, "self_attention")
    return attend(x + place, x + place, x, mask)


@fault(
    "encoder.keys-before-values",
    clause="encoder.permutation-law",
    wrong="Each key is paired with the value of its left neighbour.",
    effect="A position finds one word and reads the one before it.",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x, x, x.roll(1, dims=1), mask)  # type: ignore[no-any-return]


@fault(
    "encoder.final-norm-over-the-sentence",
    clause="encoder.padding-invariance",
    origin="B063",
    wrong="The norm at the end takes mean and variance over positions and columns together.",
    effect="Positions and padding leak into each other.",
    choices={"final_norm": "present"},
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in module.layers:
        x = layer(x, mask)
    return self.affine(module.norm, functional.layer_norm(x, x.shape[1:]))


@fault(
    "encoder.length-in-the-scale",
    clause="encoder.padding-invariance",
    wrong="Queries are scaled by the logarithm of the length, padding counted.",
    effect="A sentence attends more sharply in the company of a long one.",
    components=("encoder_layer",),
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x * math.log(1.0 + x.shape[1]), x, x, mask)  # type: ignore[no-any-return]


@fault(
    "encoder.length-first",
    clause="encoder.batch-independence",
    origin="B127",
    wrong="Batch-first input is given to code that wants the length first.",
    effect="Words attend to the words at their place in other sentences; it trains all the same.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    turned = self.run_stack(module, x.transpose(0, 1), lambda layer, inner: layer(inner, None))
    return turned.transpose(0, 1)
