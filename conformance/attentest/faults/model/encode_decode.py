"""Faults in how encoder, memory, decoder and generator are joined."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "model.generator-twice",
    clause="model.formula",
    origin="B091",
    wrong="What the generator returns is normalised once more.",
    effect="Probabilities are nearly equal, whatever the model has learned.",
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return torch.softmax(self.sound.decode(module, target, memory, source), dim=-1)


@fault(
    "model.encoder-left-out",
    clause="model.formula",
    origin="B083",
    wrong="The decoder is given the embedded source, not the encoded one.",
    effect="The encoder is never used, and the loss still falls.",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    return self.embed(module, "source", source)


@fault(
    "model.memory-normed-once-more",
    clause="model.formula",
    origin="B072",
    wrong="The memory is normalised once more on its way to the decoder.",
    effect="The gain of the last norm is undone.",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    return nn.functional.layer_norm(memory, memory.shape[-1:])


@fault(
    "model.squeezed-output",
    clause="model.shapes",
    wrong="The output is squeezed.",
    effect="One sample, or one step, loses its axis.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    return self.sound.model(module, source, target).squeeze()


@fault(
    "model.last-step-alone",
    clause="model.shapes",
    origin="B112",
    wrong="Only the last step is returned, as decoding wants it.",
    effect="Training has one word per sentence to learn from.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    return self.sound.model(module, source, target)[:, -1:]


@fault(
    "model.vocabulary-before-steps",
    clause="model.shapes",
    wrong="The output has its last two axes exchanged, as a loss may want them.",
    effect="Every reader of the output takes steps for words.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    return self.sound.model(module, source, target).transpose(1, 2)


@fault(
    "model.norm-in-forward-alone",
    clause="model.encode-decode-is-forward",
    wrong="The memory is normalised between the stacks in the whole call alone.",
    effect="Decoding in two steps translates with another model than the one trained.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    memory = self.encode(module, source)
    normed = nn.functional.layer_norm(memory, memory.shape[-1:])
    return self.decode(module, target, normed, source)


@fault(
    "model.mask-missing-in-forward-alone",
    clause="model.encode-decode-is-forward",
    origin="B086",
    wrong="The whole call hides no pads of the memory; decoding in two steps does.",
    effect="Training and decoding see different memories.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    words = torch.full_like(source, self.sizes.source_pad + 1)
    return self.decode(module, target, self.encode(module, source), words)


@fault(
    "model.target-shifted-to-its-answer",
    clause="model.causality",
    origin="B094",
    wrong="The decoder's input is shifted once more, to the tokens it has to say.",
    effect="The model learns to copy.",
)
def decode(self: Seams, module: Node, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return self.sound.decode(module, target.roll(-1, dims=1), memory, source)


@fault(
    "model.sentences-first",
    clause="model.batch-independence",
    origin="B127",
    wrong="The encoder takes the first axis for the length.",
    effect="Words attend to those of other sentences.",
)
def encode(self: Seams, module: Node, source: Tensor) -> Tensor:
    embedded = self.embed(module, "source", source)
    return module.encoder(embedded.transpose(0, 1), None).transpose(0, 1)  # type: ignore[no-any-return]


@fault(
    "model.memory-centred-over-the-batch",
    clause="model.batch-independence",
    wrong="The mean over the batch is taken off the memory.",
    effect="A translation depends on its neighbours.",
)
def pass_memory(self: Seams, memory: Tensor) -> Tensor:
    return memory - memory.mean(dim=0, keepdim=True)
