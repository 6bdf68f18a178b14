"""Faults in the gradients."""

import torch
from torch import Tensor, nn

from attentest.faults.embedding.lookup import table_of
from attentest.faults.fault import fault
from attentest.faults.model.shared import LOG_PROBABILITIES, halved, real_tokens
from attentest.faults.reference_models import Hooks, Node


@fault("model.memory-detached", "every-parameter-reached", seam="pass_memory", kind="gradient")
def memory_detached(self: Hooks, memory: Tensor) -> Tensor:
    """The memory is detached from the encoder. The encoder is never trained."""
    return memory.detach()


@fault("model.encoded-without-gradient", "every-parameter-reached", seam="encode", kind="gradient")
def encoded_without_gradient(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """The source is encoded under `no_grad`. The encoder is never trained."""
    with torch.no_grad():
        return self.correct.encode(module, source)


@fault("model.decoder-frozen", "every-parameter-reached", seam="make_model", kind="gradient")
def decoder_frozen(self: Hooks) -> Node:
    """The decoder's parameters require no gradient. Half of the model is never trained."""
    model = self.correct.make_model()
    model.decoder.requires_grad_(False)
    return model


@fault("model.first-id-frozen", "parameter-gradient", seam="lookup", origin="B054", kind="gradient")
def first_id_frozen(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """The tables have padding_idx 0, and the pad ids are others. One word is never learned."""
    rows: Tensor = nn.functional.embedding(tokens, table_of(module), padding_idx=0)
    return rows


@fault(
    "model.gradient-halved-at-the-memory", "parameter-gradient", seam="pass_memory", kind="gradient"
)
def gradient_halved_at_the_memory(self: Hooks, memory: Tensor) -> Tensor:
    """The gradient is halved between the stacks. The encoder learns half as fast as it should."""
    if memory.requires_grad:
        memory.register_hook(halved)  # type: ignore[no-untyped-call]
    return memory


def _clipped(gradient: Tensor) -> Tensor:
    return gradient.clamp(-1e-2, 1e-2)


@fault("model.gradient-clipped-inside", "parameter-gradient", seam="pass_memory", kind="gradient")
def gradient_clipped_inside(self: Hooks, memory: Tensor) -> Tensor:
    """The gradient is clipped inside the model. Steps have another direction."""
    if memory.requires_grad:
        memory.register_hook(_clipped)  # type: ignore[no-untyped-call]
    return memory


@fault(
    "model.pad-queries-see-nothing",
    "gradient-finite",
    seam="target_mask_of",
    origin="B009",
    kind="gradient",
    models=("plain",),
)
def pad_queries_see_nothing(self: Hooks, target: Tensor) -> Tensor | None:
    """Padding of the target is hidden as a query too, and gives NaN.

    One NaN in an unused row spoils every gradient.
    """
    real = self.padding_mask(target, self.sizes.target_pad)
    return self.correct.target_mask_of(target) & real.transpose(-1, -2)  # type: ignore[operator]


@fault(
    "model.memory-of-unit-length", "gradient-finite", seam="encode", origin="B061", kind="gradient"
)
def memory_of_unit_length(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """Rows of the memory are zeroed at padding, then divided by their length.

    The slope of the root at zero is infinite: NaN at the first padded batch.
    """
    memory = self.correct.encode(module, source) * real_tokens(self, source)
    return memory / (memory.pow(2).sum(dim=-1, keepdim=True).sqrt() + 1e-6)


@fault(
    "model.logarithm-of-probabilities",
    "gradient-finite",
    seam="decode",
    choices=LOG_PROBABILITIES,
    kind="gradient",
)
def logarithm_of_probabilities(
    self: Hooks, module: Node, target: Tensor, memory: Tensor, source: Tensor
) -> Tensor:
    """Log-probabilities are the logarithm of rounded probabilities.

    An unlikely token has an infinite loss.
    """
    return self.correct.decode(module, target, memory, source).exp().log()
