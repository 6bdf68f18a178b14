"""Faults of the chapter `decoder`: each function overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams

Function = Callable[[Tensor], Tensor]
Inputs = tuple[Tensor, Tensor, Tensor]

HALVES = (torch.float16, torch.bfloat16)
SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")


def _steps(
    self: Seams, module: Node, memory: Tensor, source_mask: Mask, target_mask: Mask
) -> dict[str, Function]:
    """Return the three sublayers of a layer as functions of one input."""
    return {
        "self_attention": lambda x: self.self_attend(module, x, target_mask),
        "cross_attention": lambda x: self.cross_attend(module, x, memory, source_mask),
        "feed_forward": lambda x: self.feed(module, x),
    }


def _wrapped(self: Seams, module: Node, name: str, x: Tensor, step: Function) -> Tensor:
    """Apply one sublayer in its residual connection, as the sound layer does."""
    return self.residual(module, self.norm_of(module, name), x, step)


def _all_but(
    self: Seams, module: Node, x: Tensor, steps: dict[str, Function], name: str, other: Function
) -> Tensor:
    """Apply the sublayers in turn; `other` stands for the whole residual connection of `name`."""
    for one in SUBLAYERS:
        x = other(x) if one == name else _wrapped(self, module, one, x, steps[one])
    return x


def _without_skip(
    self: Seams, module: Node, x: Tensor, steps: dict[str, Function], name: str
) -> Tensor:
    """Apply the sublayers in turn, without the path around `name`."""
    norm = self.norm_of(module, name)

    def alone(inner: Tensor) -> Tensor:
        branch = self.drop_branch(module, steps[name](self.norm_before(norm, inner)))
        return self.norm_after(norm, branch)

    return _all_but(self, module, x, steps, name, alone)


# The formula of a layer


@fault(
    "decoder.masks-exchanged",
    clause="decoder.layer-formula",
    wrong="Self-attention is given the source mask, attention to the memory the target mask.",
    effect="An error where the lengths differ; where they agree, it sees ahead and trains.",
    kind="loud",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    return self.sound.decoder_layer(module, x, memory, target_mask, source_mask)


@fault(
    "decoder.attentions-exchanged",
    clause="decoder.layer-formula",
    wrong="The projections of the two attentions are exchanged.",
    effect="A checkpoint of another library loads without complaint and gives nonsense.",
)
def sublayer_of(self: Seams, module: Node, name: str) -> nn.Module:
    exchanged = {"self_attention": "cross_attention", "cross_attention": "self_attention"}
    other = exchanged.get(name, name) if module.step == "decoder_layer" else name
    return self.sound.sublayer_of(module, other)


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


# The formula of the stack


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
    "decoder.one-layer-short",
    clause="decoder.formula",
    wrong="The last layer is never applied.",
    effect="The model is one layer shallower than its parameters.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    for layer in list(module.layers)[:-1]:
        x = layer(x, memory, source_mask, target_mask)
    return self.finish_stack(module, x)


# The order of the sublayers, and the paths around them


@fault(
    "decoder.memory-first",
    clause="decoder.order-of-sublayers",
    wrong="Attention to the memory comes before self-attention.",
    effect="Another model with the same parameters and shapes.",
)
def decoder_order(self: Seams) -> tuple[str, ...]:
    return "cross_attention", "self_attention", "feed_forward"


@fault(
    "decoder.feed-forward-in-the-middle",
    clause="decoder.order-of-sublayers",
    wrong="The feed-forward network comes before the attention to the memory.",
    effect="Another model with the same parameters and shapes.",
)
def decoder_order(self: Seams) -> tuple[str, ...]:
    return "self_attention", "feed_forward", "cross_attention"


@fault(
    "decoder.attentions-side-by-side",
    clause="decoder.order-of-sublayers",
    wrong="Both attentions read the input of the layer, and their results are added.",
    effect="What a step asks of the memory does not depend on the steps before it.",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    steps = _steps(self, module, memory, source_mask, target_mask)
    first, second = (_wrapped(self, module, one, x, steps[one]) for one in SUBLAYERS[:2])
    return _wrapped(self, module, "feed_forward", first + second - x, steps["feed_forward"])


@fault(
    "decoder.no-skip-around-self-attention",
    clause="decoder.skip-connections",
    origin="B075",
    wrong="There is no path around self-attention.",
    effect="Every step is replaced by what it gathered.",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    steps = _steps(self, module, memory, source_mask, target_mask)
    return _without_skip(self, module, x, steps, "self_attention")


@fault(
    "decoder.no-skip-around-the-memory",
    clause="decoder.skip-connections",
    origin="B075",
    wrong="There is no path around the attention to the memory.",
    effect="A step forgets the target as soon as it has read the source.",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    steps = _steps(self, module, memory, source_mask, target_mask)
    return _without_skip(self, module, x, steps, "cross_attention")


@fault(
    "decoder.no-skip-around-feed-forward",
    clause="decoder.skip-connections",
    origin="B075",
    wrong="There is no path around the feed-forward network.",
    effect="Deep stacks stop learning.",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    steps = _steps(self, module, memory, source_mask, target_mask)
    return _without_skip(self, module, x, steps, "feed_forward")


# The norms


@fault(
    "decoder.first-norm-three-times",
    clause="decoder.separate-norms",
    origin="B",
    wrong="The first norm is called after all three sublayers.",
    effect="Equal at birth; two norms are saved, counted and never trained.",
)
def norm_of(self: Seams, module: Node, name: str) -> nn.Module:
    first = module.step == "decoder_layer"
    return self.sound.norm_of(module, "self_attention" if first else name)


@fault(
    "decoder.second-norm-twice",
    clause="decoder.separate-norms",
    origin="B069",
    wrong="The second norm is called in place of the third.",
    effect="Equal at birth; the third norm is never trained.",
)
def norm_of(self: Seams, module: Node, name: str) -> nn.Module:
    third = module.step == "decoder_layer" and name == "feed_forward"
    return self.sound.norm_of(module, "cross_attention" if third else name)


@fault(
    "decoder.norms-frozen",
    clause="decoder.separate-norms",
    wrong="The gains and biases of the norms are detached before they are used.",
    effect="The output is right; the norms stay as they were born.",
    kind="gradient",
)
def norm_of(self: Seams, module: Node, name: str) -> nn.Module:
    norm = self.sound.norm_of(module, name)
    if module.step != "decoder_layer":
        return norm
    fixed = Node(self, "layer_norm")
    for key, value in norm.named_parameters():
        fixed.register_buffer(key, value.detach())
    return fixed


@fault(
    "decoder.final-norm-missing",
    clause="decoder.final-norm",
    origin="B072",
    wrong="The norm that ends the stack is built and never called.",
    effect="The generator reads states that grow with depth.",
    choices={"norm_placement": "pre", "final_norm": "present"},
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    for layer in module.layers:
        x = layer(x, memory, source_mask, target_mask)
    return x


@fault(
    "decoder.final-norm-too-many",
    clause="decoder.final-norm",
    origin="B072",
    wrong="One more norm without parameters ends a stack that is declared to have none.",
    effect="The gain and the bias of the last layer's norm lose their meaning.",
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
    return functional.layer_norm(states, x.shape[-1:])


# What a step may see of the target


@fault(
    "decoder.target-mask-ignored",
    clause="decoder.causality",
    origin="C",
    wrong="Self-attention is never given its mask.",
    effect="Every step reads its own answer; the loss falls to nothing.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    return None


@fault(
    "decoder.one-step-ahead",
    clause="decoder.causality",
    origin="B016",
    wrong="The causal triangle has one diagonal too many.",
    effect="Every step reads its own answer, and nothing beyond it.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    if target_mask is None:
        return None
    ahead = torch.ones(target_mask.shape[-1], target_mask.shape[-1], device=target_mask.device)
    return target_mask | (ahead.triu(1).tril(1) > 0)


@fault(
    "decoder.triangle-transposed",
    clause="decoder.causality",
    origin="B014",
    wrong="The mask of the target is transposed: the steps to come are seen, not those before.",
    effect="A very low loss in training, and nonsense afterwards.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    return None if target_mask is None else target_mask.transpose(-1, -2)


@fault(
    "decoder.mask-not-for-later-layers",
    clause="decoder.causality",
    wrong="The target mask is given to the first layer alone.",
    effect="From the second layer on, every step reads its own answer.",
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
        x = layer(x, memory, source_mask, target_mask if number == 0 else None)
    return self.finish_stack(module, x)


@fault(
    "decoder.gradient-from-the-future",
    clause="decoder.causality-by-gradient",
    wrong="The mean of all steps is added and its detached copy taken away.",
    effect="The output is right; each step is trained through the steps that it must not see.",
    kind="gradient",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    mean = x.mean(dim=1, keepdim=True)
    states = self.sound.decoder(module, x, memory, source_mask, target_mask)
    return states + (mean - mean.detach())


@fault(
    "decoder.masked-late",
    clause="decoder.causality-by-gradient",
    wrong="The masked states are put in place of unmasked ones by their values alone.",
    effect="The output is right; the gradient is that of a decoder without a mask.",
    kind="gradient",
    components=("decoder_layer",),
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    masked = self.sound.self_attend(module, x, mask)
    if module.step != "decoder_layer":
        return masked
    free = self.sound.self_attend(module, x, None)
    return free - free.detach() + masked.detach()


@fault(
    "decoder.padding-rows-not-columns",
    clause="decoder.target-padding",
    origin="B",
    wrong="The padding in the target mask is put on the rows of pads and not on their columns.",
    effect="Pads of the target are attended to.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    if target_mask is None:
        return None
    real = target_mask.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    # The rows of pads keep their mask, so that no row is left without a key.
    causal = torch.ones_like(target_mask).tril()
    return torch.where(real, causal, target_mask)


@fault(
    "decoder.causal-alone",
    clause="decoder.target-padding",
    wrong="Of the target mask only its shape is used: the decoder makes its own triangle.",
    effect="Pads of the target are attended to.",
    components=("decoder_layer",),
)
def self_mask(self: Seams, source_mask: Mask, target_mask: Mask) -> Mask:
    return None if target_mask is None else torch.ones_like(target_mask).tril()


# What a step may see of the memory


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
    "decoder.causal-by-default",
    clause="decoder.no-masks",
    wrong="Without a target mask the layer makes a causal one.",
    effect="Steps that the caller wanted seen are hidden.",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "decoder_layer":
        return self.sound.self_attend(module, x, mask)
    default = x.new_ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None, None]
    return self.sound.self_attend(module, x, default if mask is None else mask)


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
    "decoder.batch-statistics",
    clause="decoder.batch-independence",
    wrong="The output is centred over the batch, as a batch norm does.",
    effect="What a sentence gives depends on its company.",
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
    return states - 0.5 * states.mean(dim=0, keepdim=True)


# Layers on top of each other


@fault(
    "decoder.one-layer-many-times",
    clause="decoder.layers-own-parameters",
    origin="B087",
    wrong="The stack is a list with one layer N times.",
    effect="All layers share their weights; depth adds no parameters.",
    kind="state",
)
def make_decoder(self: Seams) -> Node:
    stack = self.sound.make_decoder()
    stack.layers = nn.ModuleList([stack.layers[0]] * self.sizes.layers)
    return stack


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


@fault(
    "decoder.every-layer-reads-the-input",
    clause="decoder.layers-in-sequence",
    origin="B081",
    wrong="Every layer is fed the input of the stack.",
    effect="Only the last layer counts.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    for layer in module.layers:
        states = layer(x, memory, source_mask, target_mask)
    return self.finish_stack(module, states)


@fault(
    "decoder.layers-reversed",
    clause="decoder.layers-in-sequence",
    wrong="The layers are applied from the last to the first.",
    effect="A checkpoint loads without complaint and gives nonsense.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    for layer in reversed(list(module.layers)):
        x = layer(x, memory, source_mask, target_mask)
    return self.finish_stack(module, x)


@fault(
    "decoder.layers-in-a-plain-list",
    clause="decoder.depth-counts",
    origin="B088",
    wrong="The layers stand in a Python list, where the framework does not look.",
    effect="They are not trained, moved, saved or switched to evaluation.",
    kind="state",
)
def make_decoder(self: Seams) -> Node:
    stack = self.sound.make_decoder()
    layers = list(stack.layers)
    del stack.layers
    vars(stack)["layers"] = layers
    return stack


@fault(
    "decoder.leftover-parameters",
    clause="decoder.depth-counts",
    wrong="Every layer holds a norm that nothing calls, assigned twice and used once.",
    effect="It is counted, decayed and saved, and never used.",
    kind="state",
    components=("decoder_layer",),
)
def make_decoder_layer(self: Seams, shared: Node | None = None) -> Node:
    layer = self.sound.make_decoder_layer(shared)
    layer.leftover = self.make_norm()
    return layer


# Gradients


@fault(
    "decoder.layers-detached",
    clause="decoder.every-parameter-reached",
    wrong="The states are detached between layers.",
    effect="The output is right; the last layer alone is trained.",
    kind="gradient",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    return self.run_stack(
        module, x, lambda layer, h: layer(h.detach(), memory, source_mask, target_mask)
    )


@fault(
    "decoder.queries-detached",
    clause="decoder.every-parameter-reached",
    wrong="Attention to the memory runs without gradients, its output detached.",
    effect="The output is right; how the source is read stays as it was born.",
    kind="gradient",
    components=("decoder_layer",),
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    return self.sound.cross_attend(module, x, memory, mask).detach()


@fault(
    "decoder.memory-detached",
    clause="decoder.gradient",
    wrong="The memory is detached.",
    effect="The output is right; the encoder is never trained.",
    kind="gradient",
)
def cross_inputs(self: Seams, x: Tensor, memory: Tensor) -> Inputs:
    return x, memory.detach(), memory.detach()


@fault(
    "decoder.skip-detached",
    clause="decoder.gradient",
    wrong="The path around each sublayer is detached.",
    effect="The output is right; gradients vanish with depth.",
    kind="gradient",
    components=("decoder_layer",),
)
def residual(self: Seams, module: Node, norm: nn.Module, x: Tensor, function: Function) -> Tensor:
    if module.step != "decoder_layer":
        return self.sound.residual(module, norm, x, function)
    branch = self.drop_branch(module, function(self.norm_before(norm, x)))
    return self.norm_after(norm, x.detach() + branch)


@fault(
    "decoder.gradient-to-padding",
    clause="decoder.gradient-to-masked-memory",
    wrong="The mean of all rows of the memory is added and its detached copy taken away.",
    effect="The output is right; the encoder learns from what stands at its padding.",
    kind="gradient",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    mean = memory.mean(dim=1, keepdim=True)
    return self.sound.cross_attend(module, x, memory, mask) + (mean - mean.detach())


@fault(
    "decoder.memory-masked-late",
    clause="decoder.gradient-to-masked-memory",
    wrong="What was read under the mask is put in place of what was read without, by its values.",
    effect="The output is right; the gradient is that of a decoder without a source mask.",
    kind="gradient",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    masked = self.sound.cross_attend(module, x, memory, mask)
    free = self.sound.cross_attend(module, x, memory, None)
    return free - free.detach() + masked.detach()


# Modes


@fault(
    "decoder.upper-layers-always-train",
    clause="decoder.eval-reaches-every-layer",
    origin="B088",
    wrong="The switch to evaluation reaches the first layer alone.",
    effect="Every decoded sentence is a matter of luck.",
    kind="mode",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    for layer in list(module.layers)[1:]:
        layer.train()
    return self.sound.decoder(module, x, memory, source_mask, target_mask)


@fault(
    "decoder.dropout-without-mode",
    clause="decoder.eval-reaches-every-layer",
    origin="B100",
    wrong="Dropout after the sublayers is a function call without the training flag.",
    effect="Every decoded sentence is a matter of luck.",
    kind="mode",
    components=("decoder_layer",),
)
def drop_branch(self: Seams, module: Node, branch: Tensor) -> Tensor:
    rate = self.dropout_rate()
    if module.step != "decoder_layer" or rate == 0:
        return self.sound.drop_branch(module, branch)
    return self.drop(branch, rate)


def _undropped(
    self: Seams, module: Node, x: Tensor, steps: dict[str, Function], name: str
) -> Tensor:
    """Apply the sublayers in turn, without dropout on what `name` adds."""
    norm = self.norm_of(module, name)

    def whole(inner: Tensor) -> Tensor:
        return self.norm_after(norm, inner + steps[name](self.norm_before(norm, inner)))

    return _all_but(self, module, x, steps, name, whole)


@fault(
    "decoder.no-dropout-after-the-memory",
    clause="decoder.dropout-on-sublayers",
    origin="B103",
    wrong="Nothing is dropped of the output of the attention to the memory.",
    effect="A third of the model is not regularised.",
    kind="mode",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    steps = _steps(self, module, memory, source_mask, target_mask)
    return _undropped(self, module, x, steps, "cross_attention")


@fault(
    "decoder.no-dropout-after-self-attention",
    clause="decoder.dropout-on-sublayers",
    origin="B103",
    wrong="Nothing is dropped of the output of self-attention.",
    effect="A third of the model is not regularised.",
    kind="mode",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    steps = _steps(self, module, memory, source_mask, target_mask)
    return _undropped(self, module, x, steps, "self_attention")


# Precision and side effects


@fault(
    "decoder.half-between-layers",
    clause="decoder.float32",
    wrong="States pass from layer to layer in float16.",
    effect="A left-over of mixed precision: three digits where seven were asked for.",
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    return self.run_stack(
        module, x, lambda layer, h: layer(h.half().to(h), memory, source_mask, target_mask)
    )


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
    "decoder.half-becomes-single",
    clause="decoder.half-precision",
    wrong="Half precision goes in and float32 comes out.",
    effect="The next layer fails, or takes twice the memory.",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    states = self.sound.decoder_layer(module, x, memory, source_mask, target_mask)
    return states.float() if x.dtype in HALVES else states


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
