"""Faults in the attention to the memory, and in the memory itself."""

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Inputs, Mask, Node


@fault("decoder.output-projection-of-the-other", "layer-formula", seam="cross_attend", origin="C")
def output_projection_of_the_other(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask
) -> Tensor:
    """Attention to the memory ends in the output projection of self-attention.

    Its own output projection is never trained.
    """
    own = self.sublayer_of(module, "cross_attention")
    held = {**own._parameters, **own._modules, "output": module.self_attention.output}
    mixed = Node(self, "multi_head_attention", **held).train(own.training)
    return mixed(*self.cross_inputs(x, memory), mask)


@fault(
    "decoder.memory-normed-in-the-layer",
    "layer-formula",
    seam="cross_attend",
    choices={"norm_placement": "pre"},
)
def memory_normed_in_the_layer(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask
) -> Tensor:
    """Under pre-norm, the norm of the attention to the memory is applied to the memory too.

    The memory is read at another scale than the encoder gave it.
    """
    norm = self.norm_of(module, "cross_attention")
    return self.correct.cross_attend(module, x, norm(memory), mask)


@fault("decoder.source-mask-for-the-first-layer", "formula", seam="decoder")
def source_mask_for_the_first_layer(
    self: Hooks,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    """The source mask is given to the first layer alone. Later layers attend to padding."""
    for number, layer in enumerate(module.layers):
        x = layer(x, memory, source_mask if number == 0 else None, target_mask)
    return self.finish_stack(module, x)


@fault("decoder.memory-normed-on-the-way", "formula", seam="decoder")
def memory_normed_on_the_way(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """The memory is normalised once more before the layers read it.

    The weights of the encoder's final norm are lost.
    """
    normed = functional.layer_norm(memory, memory.shape[-1:])
    return self.correct.decoder(module, x, normed, *masks)


@fault(
    "decoder.keys-from-itself", "memory-is-read", seam="cross_inputs", origin="B083", kind="loud"
)
def keys_from_itself(self: Hooks, x: Tensor, memory: Tensor) -> Inputs:
    """Keys and values of the second attention come from the decoder's own state.

    A language model that ignores its source.
    """
    return x, x, x


@fault("decoder.no-attention-to-the-memory", "memory-is-read", seam="decoder_order")
def no_attention_to_the_memory(self: Hooks) -> tuple[str, ...]:
    """The second sublayer is never called. A language model that ignores its source."""
    return "self_attention", "feed_forward"


@fault("decoder.memory-read-by-the-first-step", "memory-is-read", seam="cross_attend")
def memory_read_by_the_first_step(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask
) -> Tensor:
    """The first step alone reads the memory, as in a recurrent decoder.

    Later steps know of the source what the first one passed on.
    """
    read = self.correct.cross_attend(module, x, memory, mask)
    return torch.cat((read[:, :1], torch.zeros_like(read[:, 1:])), dim=1)


@fault("decoder.keys-and-values-apart", "memory-order", seam="cross_inputs")
def keys_and_values_apart(self: Hooks, x: Tensor, memory: Tensor) -> Inputs:
    """Keys come from the memory, values from its neighbours. A step reads the wrong token."""
    return x, memory, memory.cumsum(dim=1)


@fault("decoder.positions-on-the-memory", "memory-order", seam="cross_inputs")
def positions_on_the_memory(self: Hooks, x: Tensor, memory: Tensor) -> Inputs:
    """Positions are added to the memory again. The decoder attends by position."""
    place = torch.arange(memory.shape[1], device=memory.device).to(memory)[:, None].sin()
    return x, memory + place, memory


@fault("decoder.source-mask-forgotten", "source-mask-on-memory", seam="cross_mask", origin="B086")
def source_mask_forgotten(self: Hooks, source_mask: Mask, target_mask: Mask) -> Mask:
    """The decoder gets no source mask. Every step attends to padding."""
    return None


@fault("decoder.source-mask-inverted", "source-mask-on-memory", seam="cross_mask", origin="B001")
def source_mask_inverted(self: Hooks, source_mask: Mask, target_mask: Mask) -> Mask:
    """The source mask is inverted. Every step sees nothing but padding."""
    return None if source_mask is None else ~source_mask


@fault("decoder.target-mask-on-memory", "source-mask-on-memory", seam="cross_mask", origin="B085")
def target_mask_on_memory(self: Hooks, source_mask: Mask, target_mask: Mask) -> Mask:
    """Attention to the memory is given the target mask, where its shape fits.

    Padding of the source is read, and step t waits for source token t.
    """
    if source_mask is None or target_mask is None:
        return source_mask
    fits = source_mask.shape[-1] == target_mask.shape[-1]
    return target_mask if fits else source_mask


@fault(
    "decoder.causal-on-memory",
    "source-last-token-reaches-first-step",
    seam="cross_attend",
    origin="B085",
)
def causal_on_memory(self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """A causal mask is put on the memory too. Step t sees the source up to token t."""
    steps, length = x.shape[1], memory.shape[1]
    seen = torch.ones(1, 1, steps, length, dtype=torch.bool, device=x.device).tril()
    first = seen if mask is None else mask & seen
    # A step without a key left keeps the mask it was given.
    kept = first | ~first.any(dim=-1, keepdim=True)
    return self.correct.cross_attend(module, x, memory, kept if mask is None else kept & mask)


@fault(
    "decoder.memory-without-its-last-row",
    "source-last-token-reaches-first-step",
    seam="cross_attend",
)
def memory_without_its_last_row(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask
) -> Tensor:
    """The last row of the memory is cut off. The last source token is never translated."""
    length = memory.shape[1]
    last = torch.arange(length, device=x.device) == length - 1
    kept = ~last[None, None, None] if mask is None else mask & ~last
    kept = kept | ~kept.any(dim=-1, keepdim=True)
    return self.correct.cross_attend(module, x, memory, kept if mask is None else kept & mask)


@fault("decoder.memory-asks", "shapes", seam="cross_inputs", origin="B083", kind="loud")
def memory_asks(self: Hooks, x: Tensor, memory: Tensor) -> Inputs:
    """The memory is the query, and the state gives keys and values. The shape is wrong."""
    return memory, x, x


@fault("decoder.first-row-without-mask", "no-masks", seam="cross_attend")
def first_row_without_mask(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask
) -> Tensor:
    """Without a source mask only the first row of the memory is read.

    Most of the source is lost.
    """
    return self.correct.cross_attend(module, x, memory[:, :1] if mask is None else memory, mask)


@fault("decoder.memory-of-the-neighbour", "batch-independence", seam="decoder")
def memory_of_the_neighbour(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """The memory is repeated for beams in the wrong order.

    A sample reads its neighbour's memory.
    """
    return self.correct.decoder(module, x, memory.roll(1, dims=0), *masks)


@fault("decoder.first-source-mask-of-the-batch", "batch-independence", seam="decoder")
def first_source_mask_of_the_batch(
    self: Hooks,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    """The source mask of the first sample is used for all. Longer sources are cut."""
    first = None if source_mask is None else source_mask[:1]
    return self.correct.decoder(module, x, memory, first, target_mask)


@fault(
    "decoder.one-cross-attention",
    "layers-own-parameters",
    seam="make_decoder",
    origin="A",
    kind="state",
)
def one_cross_attention(self: Hooks) -> Node:
    """One attention to the memory is handed to the builder and not copied for every layer.

    All layers ask the memory the same.
    """
    stack = self.correct.make_decoder()
    for layer in stack.layers:
        layer.cross_attention = stack.layers[0].cross_attention
    return stack
