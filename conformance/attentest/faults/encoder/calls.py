"""Faults in precisions, shapes and side effects."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "encoder.float32-rounded-at-the-end",
    clause="encoder.float32",
    wrong="What is float32 is rounded to bfloat16 at the end.",
    effect="Two digits where seven were asked for; float64 does not show it.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    states = self.sound.encoder(module, x, mask)
    return states.bfloat16().float() if states.dtype == torch.float32 else states


@fault(
    "encoder.scale-beyond-half",
    clause="encoder.half-precision",
    origin="B126",
    wrong="The feed-forward network's output is scaled up by 2 to the 16 and down again.",
    effect="Exact in wide formats; infinite in float16.",
    components=("encoder_layer",),
)
def feed(self: Seams, module: Node, x: Tensor) -> Tensor:
    fed = self.sound.feed(module, x)
    return fed * 2.0**16 / 2.0**16 if module.step == "encoder_layer" else fed


@fault(
    "encoder.batch-of-one-squeezed",
    clause="encoder.shapes",
    origin="B036",
    wrong="Axes of length one are squeezed out of the output.",
    effect="The last batch of an epoch breaks, or broadcasts.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder(module, x, mask).squeeze()


@fault(
    "encoder.always-float32",
    clause="encoder.shapes",
    wrong="The output is float32, whatever the input is.",
    effect="A model in float64 or bfloat16 fails behind the encoder.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder(module, x, mask).float()


@fault(
    "encoder.sum-in-place",
    clause="encoder.input-untouched",
    origin="B077",
    wrong="The first sublayer's output is added to the input in place.",
    effect="The caller's tensor is overwritten.",
    kind="state",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    states = self.sound.encoder(module, x, mask)
    with torch.no_grad():
        x.add_(states.detach())
    return states


@fault(
    "encoder.mask-in-place",
    clause="encoder.input-untouched",
    wrong="The mask is inverted in place for code that wants the opposite, and not turned back.",
    effect="The decoder is given the inverted mask.",
    kind="state",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    states = self.sound.encoder(module, x, mask)
    if mask is not None:
        mask.logical_not_()
    return states
