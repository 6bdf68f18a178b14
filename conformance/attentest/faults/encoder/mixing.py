"""Faults in what passes between positions and sentences besides the mask."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("encoder.positions-in-every-layer", "permutation-law", seam="self_attend")
def positions_in_every_layer(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """Positions are added again to queries and keys in every layer.

    Order enters where the paper has none.
    """
    if module.step != "encoder_layer":
        return self.correct.self_attend(module, x, mask)
    place = torch.arange(x.shape[1], device=x.device).to(x)[:, None].sin()
    attend = self.sublayer_of(module, "self_attention")
    return attend(x + place, x + place, x, mask)


@fault("encoder.keys-before-values", "permutation-law", seam="self_attend")
def keys_before_values(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """Each key is paired with the value of its left neighbour.

    A position finds one word and reads the one before it.
    """
    if module.step != "encoder_layer":
        return self.correct.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x, x, x.roll(1, dims=1), mask)


@fault(
    "encoder.final-norm-over-the-sentence",
    "padding-invariance",
    seam="encoder",
    origin="B063",
    choices={"final_norm": "present"},
)
def final_norm_over_the_sentence(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The norm at the end takes mean and variance over positions and columns together.

    Positions and padding leak into each other.
    """
    for layer in module.layers:
        x = layer(x, mask)
    return self.affine(module.norm, functional.layer_norm(x, x.shape[1:]))


@fault("encoder.length-in-the-scale", "padding-invariance", seam="self_attend", in_layer=True)
def length_in_the_scale(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """Queries are scaled by the logarithm of the length, padding counted.

    A sentence attends more sharply in the company of a long one.
    """
    if module.step != "encoder_layer":
        return self.correct.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x * math.log(1.0 + x.shape[1]), x, x, mask)


@fault("encoder.length-first", "batch-independence", seam="encoder", origin="B127")
def length_first(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """Batch-first input is given to code that wants the length first.

    Words attend to the words at their place in other sentences; it trains all the same.
    """
    turned = self.run_stack(module, x.transpose(0, 1), lambda layer, inner: layer(inner, None))
    return turned.transpose(0, 1)
