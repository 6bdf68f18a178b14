"""Faults in the gradients."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import LOG_PROBABILITIES, halved, real_tokens
from attentest.specimens import Node, Seams


@fault(
    "model.memory-detached",
    clause="model.every-parameter-reached",
    wrong="The memory is detached from the encoder.",
    effect="The encoder is never trained.",
    kind="gradient",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    return memory.detach()


@fault(
    "model.encoded-without-gradient",
    clause="model.every-parameter-reached",
    wrong="The source is encoded under `no_grad`, as decoding does it.",
    effect="The encoder is never trained.",
    kind="gradient",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    with torch.no_grad():
        return self.sound.encode(module, source)


@fault(
    "model.decoder-frozen",
    clause="model.every-parameter-reached",
    wrong="The decoder's parameters ask for no gradient.",
    effect="A fine-tuning trick that was left in trains half of the model.",
    kind="gradient",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.decoder.requires_grad_(False)
    return model


@fault(
    "model.gradient-halved-at-the-memory",
    clause="model.parameter-gradient",
    wrong="The gradient is halved between the stacks.",
    effect="The encoder learns half as fast as it should.",
    kind="gradient",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    if memory.requires_grad:
        memory.register_hook(halved)  # type: ignore[no-untyped-call]
    return memory


def _clipped(gradient: Tensor) -> Tensor:
    return gradient.clamp(-1e-2, 1e-2)


@fault(
    "model.gradient-clipped-inside",
    clause="model.parameter-gradient",
    wrong="The gradient is clipped inside the model, at every number.",
    effect="The direction of the step is not that of the loss.",
    kind="gradient",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    if memory.requires_grad:
        memory.register_hook(_clipped)  # type: ignore[no-untyped-call]
    return memory


@fault(
    "model.pad-queries-see-nothing",
    clause="model.gradient-finite",
    origin="B009",
    wrong="Pads of the target are hidden as queries too, and their rows are NaN.",
    effect="One NaN in a row that nobody reads spoils every gradient.",
    specimens=("plain",),
    kind="gradient",
)
def target_mask_of(self: Seams, target: Tensor) -> Tensor | None:
    real = self.padding_mask(target, self.sizes.target_pad)
    return self.sound.target_mask_of(target) & real.transpose(-1, -2)  # type: ignore[operator]


@fault(
    "model.memory-of-unit-length",
    clause="model.gradient-finite",
    origin="B061",
    wrong="Rows of the memory are zeroed at pads, then divided by their length.",
    effect="The slope of the root at zero is infinite: NaN at the first padded batch.",
    kind="gradient",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    memory = self.sound.encode(module, source) * real_tokens(self, source)
    return memory / (memory.pow(2).sum(dim=-1, keepdim=True).sqrt() + 1e-6)


@fault(
    "model.logarithm-of-probabilities",
    clause="model.gradient-finite",
    wrong="Log-probabilities are the logarithm of what is left of the probabilities.",
    effect="A word that is as good as impossible costs infinitely much.",
    choices=LOG_PROBABILITIES,
    kind="gradient",
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return self.sound.decode(module, target, memory, source).exp().log()
