"""Faults in the path from encoder to memory, decoder and generator."""

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("model.generator-twice", "formula", seam="decode", origin="B091")
def generator_twice(
    self: Hooks, module: Node, target: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """The output is normalised twice. Probabilities are nearly equal."""
    return torch.softmax(self.correct.decode(module, target, memory, source), dim=-1)


@fault("model.encoder-left-out", "formula", seam="encode", origin="B083")
def encoder_left_out(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """The decoder gets the embedded source, not the memory. The encoder is never used."""
    return self.embed(module, "source", source)


@fault("model.memory-normed-once-more", "formula", seam="pass_memory", origin="B072")
def memory_normed_once_more(self: Hooks, memory: Tensor) -> Tensor:
    """The memory is normalised once more. The weight of the last norm has no effect."""
    return nn.functional.layer_norm(memory, memory.shape[-1:])


@fault("model.squeezed-output", "shapes", seam="model")
def squeezed_output(self: Hooks, module: Node, source: Tensor, target: Tensor) -> Tensor:
    """The output is squeezed. One sample, or one step, loses its axis."""
    return self.correct.model(module, source, target).squeeze()


@fault("model.last-step-alone", "shapes", seam="model", origin="B112")
def last_step_alone(self: Hooks, module: Node, source: Tensor, target: Tensor) -> Tensor:
    """Only the last step is returned. Training has one token per sequence."""
    return self.correct.model(module, source, target)[:, -1:]


@fault("model.vocabulary-before-steps", "shapes", seam="model")
def vocabulary_before_steps(self: Hooks, module: Node, source: Tensor, target: Tensor) -> Tensor:
    """The last two axes of the output are exchanged, as a loss may want them.

    Steps are taken for tokens.
    """
    return self.correct.model(module, source, target).transpose(1, 2)


@fault("model.norm-in-forward-alone", "encode-decode-is-forward", seam="model")
def norm_in_forward_alone(self: Hooks, module: Node, source: Tensor, target: Tensor) -> Tensor:
    """The whole model normalises the memory. Training and a decode that does not differ."""
    memory = self.encode(module, source)
    normed = nn.functional.layer_norm(memory, memory.shape[-1:])
    return self.decode(module, target, normed, source)


@fault(
    "model.mask-missing-in-forward-alone", "encode-decode-is-forward", seam="model", origin="B086"
)
def mask_missing_in_forward_alone(
    self: Hooks, module: Node, source: Tensor, target: Tensor
) -> Tensor:
    """The whole model does not mask the memory. Training and a decode that does differ."""
    words = torch.full_like(source, self.sizes.source_pad + 1)
    return self.decode(module, target, self.encode(module, source), words)


@fault("model.target-shifted-to-its-answer", "causality", seam="decode", origin="B094")
def target_shifted_to_its_answer(
    self: Hooks, module: Node, target: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """The decoder's input is shifted to its labels. The model learns to copy."""
    return self.correct.decode(module, target.roll(-1, dims=1), memory, source)


@fault("model.sentences-first", "batch-independence", seam="encode", origin="B127")
def sentences_first(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """The encoder takes the first axis for the length. Tokens attend across sequences."""
    embedded = self.embed(module, "source", source)
    return module.encoder(embedded.transpose(0, 1), None).transpose(0, 1)


@fault("model.memory-centred-over-the-batch", "batch-independence", seam="pass_memory")
def memory_centred_over_the_batch(self: Hooks, memory: Tensor) -> Tensor:
    """The memory is centred over the batch. Samples affect each other."""
    return memory - memory.mean(dim=0, keepdim=True)


@fault("model.memory-cut-to-the-target", "step-by-step", seam="decode")
def memory_cut_to_the_target(
    self: Hooks, module: Node, target: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """The memory is cut to the length of the target. A short prefix sees a part of the source."""
    length = max(target.shape[1], 1)
    return self.correct.decode(module, target, memory[:, :length], source[:, :length])


@fault("model.scaled-by-length", "step-by-step", seam="decode")
def scaled_by_length(
    self: Hooks, module: Node, target: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """The memory is divided by the root of the target's length. Every step has another scale."""
    scale = torch.tensor(target.shape[1], dtype=memory.dtype).sqrt()
    return self.correct.decode(module, target, memory / scale, source)
