"""Faults that mix positions or sequences."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("encoder.positions-in-every-layer", "permutation-law", seam="self_attend")
def positions_in_every_layer(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """Positions are added again in every layer. Order enters where it should not."""
    if module.step != "encoder_layer":
        return self.correct.self_attend(module, x, mask)
    place = torch.arange(x.shape[1], device=x.device).to(x)[:, None].sin()
    attend = self.sublayer_of(module, "self_attention")
    return attend(x + place, x + place, x, mask)


@fault("encoder.keys-before-values", "permutation-law", seam="self_attend")
def keys_before_values(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """Each key is paired with the value to its left. A position reads the wrong token."""
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
    """The final norm runs over positions and columns. Positions and padding affect each other."""
    for layer in module.layers:
        x = layer(x, mask)
    return self.affine(module.norm, functional.layer_norm(x, x.shape[1:]))


@fault("encoder.length-in-the-scale", "padding-invariance", seam="self_attend", in_layer=True)
def length_in_the_scale(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """Queries are scaled by the logarithm of the length, padding counted.

    Results depend on the padding.
    """
    if module.step != "encoder_layer":
        return self.correct.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x * math.log(1.0 + x.shape[1]), x, x, mask)


@fault("encoder.length-first", "batch-independence", seam="encoder", origin="B127")
def length_first(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """Batch-first input is given to code that wants the length first.

    Tokens attend across sequences.
    """
    turned = self.run_stack(module, x.transpose(0, 1), lambda layer, inner: layer(inner, None))
    return turned.transpose(0, 1)
