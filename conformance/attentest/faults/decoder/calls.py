"""Faults in precisions, shapes and side effects."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "decoder.single-step-squeezed",
    clause="decoder.shapes",
    origin="B036",
    wrong="An axis of one step is squeezed out of the output.",
    effect="The first step of decoding breaks, or broadcasts.",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    return self.sound.decoder_layer(module, x, memory, source_mask, target_mask).squeeze(1)


@fault(
    "decoder.always-float32",
    clause="decoder.shapes",
    wrong="The output is float32, whatever the input is.",
    effect="A model in float64 or bfloat16 fails behind the decoder.",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    return self.sound.decoder_layer(module, x, memory, source_mask, target_mask).float()


@fault(
    "decoder.memory-in-bfloat16",
    clause="decoder.float32",
    wrong="A memory in float32 is kept in bfloat16, to save room.",
    effect="Two digits where seven were asked for; float64 does not show it.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    if memory.dtype == torch.float32:
        memory = memory.bfloat16().float()
    return self.sound.decoder(module, x, memory, source_mask, target_mask)


@fault(
    "decoder.scale-beyond-half",
    clause="decoder.half-precision",
    origin="B126",
    wrong="What is read from the memory is scaled up by 2 to the 16 and down again.",
    effect="Exact in wide formats; infinite in float16.",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    return self.sound.cross_attend(module, x, memory, mask) * 2.0**16 / 2.0**16


@fault(
    "decoder.memory-normed-in-place",
    clause="decoder.input-untouched",
    wrong="The memory is centred in place.",
    effect="It is another sentence at the next layer, and at the next step of decoding.",
    kind="state",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    states = self.sound.decoder(module, x, memory, source_mask, target_mask)
    with torch.no_grad():
        memory.sub_(memory.mean(dim=-1, keepdim=True))
    return states


@fault(
    "decoder.mask-in-place",
    clause="decoder.input-untouched",
    wrong="The target mask is inverted in place for code that wants the opposite.",
    effect="The next layer, and the next batch, are given the inverted mask.",
    kind="state",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    states = self.sound.decoder(module, x, memory, source_mask, target_mask)
    if target_mask is not None:
        target_mask.logical_not_()
    return states
