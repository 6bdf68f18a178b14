"""Faults in what a step may see of the memory, and what else is done to it."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams

Inputs = tuple[Tensor, Tensor, Tensor]


@fault(
    "decoder.output-projection-of-the-other",
    clause="decoder.layer-formula",
    origin="C",
    wrong="Attention to the memory ends in the output projection of self-attention.",
    effect="Its own output projection is never trained.",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    own = self.sublayer_of(module, "cross_attention")
    held = {**own._parameters, **own._modules, "output": module.self_attention.output}
    mixed = Node(self, "multi_head_attention", **held).train(own.training)
    return mixed(*self.cross_inputs(x, memory), mask)


@fault(
    "decoder.memory-normed-in-the-layer",
    clause="decoder.layer-formula",
    wrong="Under pre-norm, the norm of the attention to the memory is applied to the memory too.",
    effect="The memory is read at another scale than the encoder gave it.",
    choices={"norm_placement": "pre"},
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    norm = self.norm_of(module, "cross_attention")
    return self.sound.cross_attend(module, x, norm(memory), mask)


@fault(
    "decoder.source-mask-for-the-first-layer",
    clause="decoder.formula",
    wrong="The source mask is given to the first layer alone.",
    effect="From the second layer on, padding of the source is attended to.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    for number, layer in enumerate(module.layers):
        x = layer(x, memory, source_mask if number == 0 else None, target_mask)
    return self.finish_stack(module, x)


@fault(
    "decoder.memory-normed-on-the-way",
    clause="decoder.formula",
    wrong="The memory is normalised once more before the layers read it.",
    effect="Wrong for a decoder under an encoder without a final norm, or with gains in it.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    normed = functional.layer_norm(memory, memory.shape[-1:])
    return self.sound.decoder(module, x, normed, source_mask, target_mask)


@fault(
    "decoder.keys-from-itself",
    clause="decoder.memory-is-read",
    origin="B083",
    wrong="Keys and values of the second attention come from the decoder's own state.",
    effect="A language model that ignores its source.",
    kind="loud",
)
def cross_inputs(self: Seams, x: Tensor, memory: Tensor) -> Inputs:
    return x, x, x


@fault(
    "decoder.no-attention-to-the-memory",
    clause="decoder.memory-is-read",
    wrong="The second sublayer is never called.",
    effect="A language model that ignores its source.",
)
def decoder_order(self: Seams) -> tuple[str, ...]:
    return "self_attention", "feed_forward"


@fault(
    "decoder.memory-read-by-the-first-step",
    clause="decoder.memory-is-read",
    wrong="The first step alone reads the memory, as in a recurrent decoder.",
    effect="Later steps know of the source what the first one passed on.",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    read = self.sound.cross_attend(module, x, memory, mask)
    return torch.cat((read[:, :1], torch.zeros_like(read[:, 1:])), dim=1)


@fault(
    "decoder.keys-and-values-apart",
    clause="decoder.memory-order",
    wrong="Keys come from the memory, values from its neighbours.",
    effect="A step finds one word of the source and reads another.",
)
def cross_inputs(self: Seams, x: Tensor, memory: Tensor) -> Inputs:
    return x, memory, memory.cumsum(dim=1)


@fault(
    "decoder.positions-on-the-memory",
    clause="decoder.memory-order",
    wrong="Positions are added to the memory once more.",
    effect="The decoder attends by place, which the encoder has already said.",
)
def cross_inputs(self: Seams, x: Tensor, memory: Tensor) -> Inputs:
    place = torch.arange(memory.shape[1], device=memory.device).to(memory)[:, None].sin()
    return x, memory + place, memory


@fault(
    "decoder.source-mask-forgotten",
    clause="decoder.source-mask-on-memory",
    origin="B086",
    wrong="The source mask is given to the encoder and not to the decoder.",
    effect="Every step attends to padding.",
)
def cross_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    return None


@fault(
    "decoder.source-mask-inverted",
    clause="decoder.source-mask-on-memory",
    origin="B001",
    wrong="The source mask is inverted.",
    effect="Every step sees nothing but padding.",
)
def cross_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    return None if source_mask is None else ~source_mask


@fault(
    "decoder.target-mask-on-memory",
    clause="decoder.source-mask-on-memory",
    origin="B085",
    wrong="Attention to the memory is given the target mask, where its shape fits.",
    effect="Padding of the source is read, and step t waits for source token t.",
)
def cross_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    if source_mask is None or target_mask is None:
        return source_mask
    fits = source_mask.shape[-1] == target_mask.shape[-1]
    return target_mask if fits else source_mask


@fault(
    "decoder.causal-on-memory",
    clause="decoder.source-last-token-reaches-first-step",
    origin="B085",
    wrong="The causal triangle is put on the memory beside the source mask.",
    effect="Step t sees the source up to token t.",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    steps, length = x.shape[1], memory.shape[1]
    seen = torch.ones(1, 1, steps, length, dtype=torch.bool, device=x.device).tril()
    first = seen if mask is None else mask & seen
    # A step that is left without a key falls back on what it was given.
    kept = first | ~first.any(dim=-1, keepdim=True)
    return self.sound.cross_attend(module, x, memory, kept if mask is None else kept & mask)


@fault(
    "decoder.memory-without-its-last-row",
    clause="decoder.source-last-token-reaches-first-step",
    wrong="The last row of the memory is cut off, as the end of a sentence.",
    effect="The last word of the source is never translated.",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    length = memory.shape[1]
    last = torch.arange(length, device=x.device) == length - 1
    kept = ~last[None, None, None] if mask is None else mask & ~last
    kept = kept | ~kept.any(dim=-1, keepdim=True)
    return self.sound.cross_attend(module, x, memory, kept if mask is None else kept & mask)


@fault(
    "decoder.memory-asks",
    clause="decoder.shapes",
    origin="B083",
    wrong="The memory is used as the query, and keys and values are the decoder's own.",
    effect="An error, or output as long as the source.",
    kind="loud",
)
def cross_inputs(self: Seams, x: Tensor, memory: Tensor) -> Inputs:
    return memory, x, x


@fault(
    "decoder.first-row-without-mask",
    clause="decoder.no-masks",
    wrong="Without a source mask the first row of the memory alone is read.",
    effect="A short cut for classifiers, in a decoder that reads sentences.",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    return self.sound.cross_attend(module, x, memory[:, :1] if mask is None else memory, mask)


@fault(
    "decoder.memory-of-the-neighbour",
    clause="decoder.batch-independence",
    wrong="The memory is repeated for beams in the wrong order: a sample reads its neighbour's.",
    effect="The right answer to another sentence.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    return self.sound.decoder(module, x, memory.roll(1, dims=0), source_mask, target_mask)


@fault(
    "decoder.first-source-mask-of-the-batch",
    clause="decoder.batch-independence",
    wrong="The source mask of the first sentence serves the whole batch.",
    effect="Longer sources are cut, shorter ones are read with their padding.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    first = None if source_mask is None else source_mask[:1]
    return self.sound.decoder(module, x, memory, first, target_mask)


@fault(
    "decoder.one-cross-attention",
    clause="decoder.layers-own-parameters",
    origin="A",
    wrong="One attention to the memory is handed to the builder and not copied for every layer.",
    effect="All layers ask the memory the same.",
    kind="state",
)
def make_decoder(self: Seams) -> Node:
    stack = self.sound.make_decoder()
    for layer in stack.layers:
        layer.cross_attention = stack.layers[0].cross_attention
    return stack
