"""Faults of the chapter `encoder`: each function overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams

Function = Callable[[Tensor], Tensor]
Inputs = tuple[Tensor, Tensor, Tensor]

HALVES = (torch.float16, torch.bfloat16)


def _wrapped(self: Seams, module: Node, name: str, x: Tensor, mask: Mask) -> Tensor:
    """Apply one sublayer of a layer, in its residual connection, as the sound layer does."""
    function = _sublayer(self, module, name, mask)
    return self.residual(module, self.norm_of(module, name), x, function)


def _sublayer(self: Seams, module: Node, name: str, mask: Mask) -> Function:
    if name == "feed_forward":
        return lambda x: self.feed(module, x)
    return lambda x: self.self_attend(module, x, mask)


def _without_skip(self: Seams, module: Node, name: str, x: Tensor, mask: Mask) -> Tensor:
    """Apply one sublayer with its norm and without the path around it."""
    function = _sublayer(self, module, name, mask)
    norm = self.norm_of(module, name)
    branch = self.drop_branch(module, function(self.norm_before(norm, x)))
    return self.norm_after(norm, branch)


# The formula of a layer


@fault(
    "encoder.keys-skip-the-norm",
    clause="encoder.layer-formula",
    wrong="Pre-norm is applied to the queries of self-attention alone, not to keys and values.",
    effect="Keys and values grow with depth.",
    choices={"norm_placement": "pre"},
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    attend = self.sublayer_of(module, "self_attention")
    norm = self.norm_of(module, "self_attention")
    x = self.residual(module, norm, x, lambda inner: attend(inner, x, x, mask))
    return _wrapped(self, module, "feed_forward", x, mask)


@fault(
    "encoder.branch-scaled-down",
    clause="encoder.layer-formula",
    wrong="The output of each sublayer is divided by the root of 2 before it is added.",
    effect="A trick for stable sums that nobody declared: weights do not carry over.",
    components=("encoder_layer",),
)
def drop_branch(self: Seams, module: Node, branch: Tensor) -> Tensor:
    kept = self.sound.drop_branch(module, branch)
    return kept / math.sqrt(2.0) if module.step == "encoder_layer" else kept


# The formula of the stack


@fault(
    "encoder.mask-for-the-first-layer",
    clause="encoder.formula",
    wrong="The mask is given to the first layer alone.",
    effect="From the second layer on, padding is attended to.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for number, layer in enumerate(module.layers):
        x = layer(x, mask if number == 0 else None)
    return self.finish_stack(module, x)


@fault(
    "encoder.one-layer-short",
    clause="encoder.formula",
    wrong="The last layer is never applied.",
    effect="The model is one layer shallower than its parameters.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in list(module.layers)[:-1]:
        x = layer(x, mask)
    return self.finish_stack(module, x)


# The placement of the norm


@fault(
    "encoder.pre-for-post",
    clause="encoder.norm-placement",
    origin="B070",
    wrong="The norm comes before the sublayer where it is declared to come after the sum.",
    effect="It trains; no weights carry over from or to what it says it is.",
    components=("encoder_layer",),
)
def residual(self: Seams, module: Node, norm: nn.Module, x: Tensor, function: Function) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.residual(module, norm, x, function)
    return x + self.drop_branch(module, function(norm(x)))


@fault(
    "encoder.post-for-pre",
    clause="encoder.norm-placement",
    origin="B070",
    wrong="The norm comes after the sum where it is declared to come before the sublayer.",
    effect="The path around the sublayers is no identity; deep stacks need a warm-up.",
    choices={"norm_placement": "pre"},
    components=("encoder_layer",),
)
def residual(self: Seams, module: Node, norm: nn.Module, x: Tensor, function: Function) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.residual(module, norm, x, function)
    return norm(x + self.drop_branch(module, function(x)))


@fault(
    "encoder.skip-from-the-norm",
    clause="encoder.norm-placement",
    origin="B073",
    wrong="The path around a sublayer starts behind the norm: h = norm(x), then h + f(h).",
    effect="Nothing of the input passes a layer as it is.",
    choices={"norm_placement": "pre"},
    components=("encoder_layer",),
)
def residual(self: Seams, module: Node, norm: nn.Module, x: Tensor, function: Function) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.residual(module, norm, x, function)
    inner: Tensor = norm(x)
    return inner + self.drop_branch(module, function(inner))


# Which norms there are


@fault(
    "encoder.one-norm-for-both",
    clause="encoder.norm-sharing",
    origin="B068",
    wrong="One norm is built and given to both sublayers.",
    effect="Equal at birth, too few parameters, and no room for two scales later.",
)
def make_encoder_layer(self: Seams, shared: Node | None = None) -> Node:
    return self.sound.make_encoder_layer(shared or self.make_norm())


@fault(
    "encoder.norms-not-shared",
    clause="encoder.norm-sharing",
    wrong="Each sublayer has a norm of its own where one is declared for all.",
    effect="Equal until the first step of training, then it is another model.",
    choices={"norm_sharing": "shared"},
)
def make_encoder_layer(self: Seams, shared: Node | None = None) -> Node:
    layer = self.sound.make_encoder_layer(shared)
    layer.feed_forward_norm = self.make_norm()
    return layer


@fault(
    "encoder.first-norm-twice",
    clause="encoder.separate-norms",
    origin="B069",
    wrong="The first norm is called after both sublayers, the second never.",
    effect="Equal at birth; the second norm is saved, counted and never trained.",
    components=("encoder_layer",),
)
def norm_of(self: Seams, module: Node, name: str) -> nn.Module:
    first = module.step == "encoder_layer"
    return self.sound.norm_of(module, "self_attention" if first else name)


@fault(
    "encoder.norms-exchanged",
    clause="encoder.separate-norms",
    wrong="Each of the two norms stands at the other's place.",
    effect="Invisible until a checkpoint of another library is loaded.",
    components=("encoder_layer",),
)
def norm_of(self: Seams, module: Node, name: str) -> nn.Module:
    if module.step != "encoder_layer":
        return self.sound.norm_of(module, name)
    other = "feed_forward" if name == "self_attention" else "self_attention"
    return self.sound.norm_of(module, other)


@fault(
    "encoder.norms-frozen",
    clause="encoder.separate-norms",
    wrong="The gains and biases of the norms are detached before they are used.",
    effect="The output is right; the norms stay as they were born.",
    kind="gradient",
    components=("encoder_layer",),
)
def norm_of(self: Seams, module: Node, name: str) -> nn.Module:
    norm = self.sound.norm_of(module, name)
    if module.step != "encoder_layer":
        return norm
    fixed = Node(self, "layer_norm")
    for key, value in norm.named_parameters():
        fixed.register_buffer(key, value.detach())
    return fixed


# The norm at the end


@fault(
    "encoder.final-norm-missing",
    clause="encoder.final-norm",
    origin="B072",
    wrong="The norm that ends the stack is built and never called.",
    effect="A pre-norm stack's output grows with its depth.",
    choices={"norm_placement": "pre", "final_norm": "present"},
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in module.layers:
        x = layer(x, mask)
    return x


@fault(
    "encoder.final-norm-too-many",
    clause="encoder.final-norm",
    origin="B072",
    wrong="One more norm without parameters ends a stack that is declared to have none.",
    effect="The gain and the bias of the last layer's norm lose their meaning.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return functional.layer_norm(self.sound.encoder(module, x, mask), x.shape[-1:])


@fault(
    "encoder.final-norm-after-every-layer",
    clause="encoder.final-norm",
    wrong="The final norm is applied after every layer.",
    effect="Pre-norm layers no longer stand on a path that nothing touches.",
    choices={"norm_placement": "pre", "final_norm": "present"},
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in module.layers:
        x = self.finish_stack(module, layer(x, mask))
    return x


# The order of the sublayers, and the paths around them


@fault(
    "encoder.feed-forward-first",
    clause="encoder.order-of-sublayers",
    wrong="The feed-forward network comes before self-attention.",
    effect="Another model with the same parameters and shapes.",
)
def encoder_order(self: Seams) -> tuple[str, ...]:
    return "feed_forward", "self_attention"


@fault(
    "encoder.sublayers-side-by-side",
    clause="encoder.order-of-sublayers",
    wrong="Both sublayers read the input of the layer, and their results are added.",
    effect="Another model with the same parameters and shapes.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    attended = _wrapped(self, module, "self_attention", x, mask)
    return attended + _wrapped(self, module, "feed_forward", x, mask) - x


@fault(
    "encoder.no-skip-around-attention",
    clause="encoder.skip-connections",
    origin="B075",
    wrong="There is no path around self-attention.",
    effect="Every position is replaced by what it gathered; deep stacks stop learning.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    x = _without_skip(self, module, "self_attention", x, mask)
    return _wrapped(self, module, "feed_forward", x, mask)


@fault(
    "encoder.no-skip-around-feed-forward",
    clause="encoder.skip-connections",
    origin="B075",
    wrong="There is no path around the feed-forward network.",
    effect="Deep stacks stop learning.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    x = _wrapped(self, module, "self_attention", x, mask)
    return _without_skip(self, module, "feed_forward", x, mask)


@fault(
    "encoder.second-skip-from-the-input",
    clause="encoder.skip-connections",
    wrong="The path around the feed-forward network starts at the layer's input.",
    effect="What attention found passes on through the feed-forward network alone.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    attended = _wrapped(self, module, "self_attention", x, mask)
    norm = self.norm_of(module, "feed_forward")
    fed = self.feed(module, self.norm_before(norm, attended))
    return self.norm_after(norm, x + self.drop_branch(module, fed))


# What a position can see


@fault(
    "encoder.positions-in-every-layer",
    clause="encoder.permutation-law",
    wrong="Positions are added again to queries and keys in every layer.",
    effect="Order enters where the paper has none.",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.self_attend(module, x, mask)
    place = torch.arange(x.shape[1], device=x.device).to(x)[:, None].sin()
    attend = self.sublayer_of(module, "self_attention")
    return attend(x + place, x + place, x, mask)


@fault(
    "encoder.keys-before-values",
    clause="encoder.permutation-law",
    wrong="Each key is paired with the value of its left neighbour.",
    effect="A position finds one word and reads the one before it.",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x, x, x.roll(1, dims=1), mask)  # type: ignore[no-any-return]


@fault(
    "encoder.mask-not-passed-on",
    clause="encoder.padding-invariance",
    wrong="The stack takes a mask and does not pass it to its layers.",
    effect="What a sentence means depends on the longest one in its batch.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder(module, x)


@fault(
    "encoder.final-norm-over-the-sentence",
    clause="encoder.padding-invariance",
    origin="B063",
    wrong="The norm at the end takes mean and variance over positions and columns together.",
    effect="Positions and padding leak into each other.",
    choices={"final_norm": "present"},
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in module.layers:
        x = layer(x, mask)
    return self.affine(module.norm, functional.layer_norm(x, x.shape[1:]))


@fault(
    "encoder.length-in-the-scale",
    clause="encoder.padding-invariance",
    wrong="Queries are scaled by the logarithm of the length, padding counted.",
    effect="A sentence attends more sharply in the company of a long one.",
    components=("encoder_layer",),
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x * math.log(1.0 + x.shape[1]), x, x, mask)  # type: ignore[no-any-return]


@fault(
    "encoder.mask-inverted",
    clause="encoder.padding-content",
    origin="B001",
    wrong="The mask is inverted: only padding is attended to.",
    effect="Every word sees nothing but padding.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else ~mask


@fault(
    "encoder.padding-guessed",
    clause="encoder.padding-content",
    origin="B020",
    wrong="Padding is guessed from rows of zeros, and the mask is ignored.",
    effect="Positions were added before, so no row is zero and nothing is hidden.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder_layer(module, x, (x.abs().sum(-1) != 0)[:, None, None, :])


@fault(
    "encoder.padding-mask-on-queries",
    clause="encoder.padding-content",
    origin="B011",
    wrong="A padding mask is put on the queries instead of the keys.",
    effect="Words attend to padding, and padding attends to nothing.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else mask.transpose(-1, -2)


@fault(
    "encoder.mask-tiled-by-heads",
    clause="encoder.mask-shapes",
    origin="B013",
    wrong="The mask is repeated for the heads in the order of heads, and read in that of samples.",
    effect="The heads of a sentence use the padding of another.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    if mask is None or mask.shape[0] == 1 or mask.shape[1] > 1:
        return mask
    batch, heads = mask.shape[0], self.sizes.heads
    return mask[:, 0].repeat(heads, 1, 1).unflatten(0, (batch, heads))


@fault(
    "encoder.first-row-of-the-mask",
    clause="encoder.mask-shapes",
    wrong="Of a mask over queries and keys, the first row is used for every query.",
    effect="A mask of any other kind than padding is not what was asked for.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else mask[..., :1, :]


@fault(
    "encoder.first-head-of-the-mask",
    clause="encoder.mask-shapes",
    wrong="Of a mask with an axis of heads, that of the first head is used for all.",
    effect="Heads that were given windows of their own share one.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else mask[:, :1]


@fault(
    "encoder.sees-itself-always",
    clause="encoder.mask-shapes",
    wrong="Every position may attend to itself, whatever the mask says.",
    effect="A trick against rows without a key lets hidden words through.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    if mask is None:
        return None
    own = torch.eye(mask.shape[-1], dtype=torch.bool, device=mask.device)
    return mask | own


@fault(
    "encoder.causal-by-default",
    clause="encoder.no-mask",
    wrong="Without a mask the layer makes a causal one.",
    effect="A word does not see the words after it, which the encoder is for.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    default = x.new_ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()[None, None]
    return self.sound.encoder_layer(module, x, default if mask is None else mask)


@fault(
    "encoder.no-mask-no-scale",
    clause="encoder.no-mask",
    wrong="The short cut for calls without a mask scales the queries a second time.",
    effect="Batches with and without padding go through two models.",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    if module.step != "encoder_layer" or mask is not None:
        return self.sound.self_attend(module, x, mask)
    attend = self.sublayer_of(module, "self_attention")
    return attend(x * self.scale(self.head_width(), self.sizes.heads), x, x, mask)  # type: ignore[no-any-return]


@fault(
    "encoder.mask-shifted",
    clause="encoder.reach-is-the-mask",
    wrong="The mask is shifted by one key.",
    effect="It was made for a sentence with one more token at its start.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    return None if mask is None else mask.roll(1, dims=-1)


@fault(
    "encoder.keys-before-alone",
    clause="encoder.reach-is-the-mask",
    wrong="Of what the mask keeps, a position sees itself and what stands before it.",
    effect="The causal layer of a decoder is used as an encoder; half of the sentence is not read.",
)
def encoder_mask(self: Seams, mask: Mask) -> Mask:
    if mask is None:
        return None
    before = mask & torch.ones(mask.shape[-1], mask.shape[-1], device=mask.device).tril().bool()
    # A position with nothing to see keeps what it had.
    return torch.where(before.any(dim=-1, keepdim=True), before, mask)


@fault(
    "encoder.length-first",
    clause="encoder.batch-independence",
    origin="B127",
    wrong="Batch-first input is given to code that wants the length first.",
    effect="Words attend to the words at their place in other sentences; it trains all the same.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    turned = self.run_stack(module, x.transpose(0, 1), lambda layer, inner: layer(inner, None))
    return turned.transpose(0, 1)


@fault(
    "encoder.batch-statistics",
    clause="encoder.batch-independence",
    wrong="The output is centred over the batch, as a batch norm does.",
    effect="What a sentence gives depends on its company.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    states = self.sound.encoder(module, x, mask)
    return states - 0.5 * states.mean(dim=0, keepdim=True)


@fault(
    "encoder.first-mask-of-the-batch",
    clause="encoder.batch-independence",
    wrong="The mask of the first sentence serves the whole batch.",
    effect="Longer sentences are cut, shorter ones attend to padding.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder(module, x, None if mask is None else mask[:1])


# Layers on top of each other


def _repeated(self: Seams, layer: Node) -> Node:
    stack = self.sound.make_encoder()
    stack.layers = nn.ModuleList([layer] * self.sizes.layers)
    return stack


@fault(
    "encoder.one-layer-many-times",
    clause="encoder.layers-own-parameters",
    origin="B087",
    wrong="The stack is a list with one layer N times.",
    effect="All layers share their weights; depth adds no parameters.",
    kind="state",
)
def make_encoder(self: Seams) -> Node:
    return _repeated(self, self.make_encoder_layer(self.shared_norm()))


@fault(
    "encoder.attention-for-all-layers",
    clause="encoder.layers-own-parameters",
    origin="A",
    wrong="One attention is handed to the builder and not copied for every layer.",
    effect="Attention is the same in all layers.",
    kind="state",
)
def make_encoder(self: Seams) -> Node:
    stack = self.sound.make_encoder()
    for layer in stack.layers:
        layer.self_attention = stack.layers[0].self_attention
    return stack


@fault(
    "encoder.every-layer-reads-the-input",
    clause="encoder.layers-in-sequence",
    origin="B081",
    wrong="Every layer is fed the input of the stack.",
    effect="Only the last layer counts.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in module.layers:
        states = layer(x, mask)
    return self.finish_stack(module, states)


@fault(
    "encoder.layers-reversed",
    clause="encoder.layers-in-sequence",
    wrong="The layers are applied from the last to the first.",
    effect="A checkpoint loads without complaint and gives nonsense.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in reversed(list(module.layers)):
        x = layer(x, mask)
    return self.finish_stack(module, x)


@fault(
    "encoder.norm-on-the-way-in",
    clause="encoder.stack-of-one-is-a-layer",
    wrong="The input is normalised before the first layer.",
    effect="The scale of the embeddings is lost.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder(module, functional.layer_norm(x, x.shape[-1:]), mask)


@fault(
    "encoder.last-layer-twice",
    clause="encoder.stack-of-one-is-a-layer",
    wrong="The loop runs once more, with the last layer again.",
    effect="The model is one layer deeper than its parameters.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in [*module.layers, module.layers[-1]]:
        x = layer(x, mask)
    return self.finish_stack(module, x)


@fault(
    "encoder.layers-in-a-plain-list",
    clause="encoder.depth-counts",
    origin="B088",
    wrong="The layers stand in a Python list, where the framework does not look.",
    effect="They are not trained, moved, saved or switched to evaluation.",
    kind="state",
)
def make_encoder(self: Seams) -> Node:
    stack = self.sound.make_encoder()
    layers = list(stack.layers)
    del stack.layers
    vars(stack)["layers"] = layers
    return stack


@fault(
    "encoder.leftover-parameters",
    clause="encoder.depth-counts",
    wrong="Every layer holds a norm that nothing calls, left over from an experiment.",
    effect="It is counted, decayed and saved, and never used.",
    kind="state",
    components=("encoder_layer",),
)
def make_encoder_layer(self: Seams, shared: Node | None = None) -> Node:
    layer = self.sound.make_encoder_layer(shared)
    layer.leftover = self.make_norm()
    return layer


# Gradients


@fault(
    "encoder.layers-detached",
    clause="encoder.every-parameter-reached",
    wrong="The states are detached between layers.",
    effect="The output is right; the last layer alone is trained.",
    kind="gradient",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.run_stack(module, x, lambda layer, inner: layer(inner.detach(), mask))


@fault(
    "encoder.only-the-last-layer-trained",
    clause="encoder.every-parameter-reached",
    wrong="All layers but the last run without recording gradients.",
    effect="The output is right; the lower layers stay as they were born.",
    kind="gradient",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    layers = list(module.layers)
    with torch.no_grad():
        below = x
        for layer in layers[:-1]:
            below = layer(below, mask)
    return self.finish_stack(module, layers[-1](x + (below - x).detach(), mask))


@fault(
    "encoder.skip-detached",
    clause="encoder.gradient",
    wrong="The path around each sublayer is detached.",
    effect="The output is right; gradients vanish with depth.",
    kind="gradient",
    components=("encoder_layer",),
)
def residual(self: Seams, module: Node, norm: nn.Module, x: Tensor, function: Function) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.residual(module, norm, x, function)
    branch = self.drop_branch(module, function(self.norm_before(norm, x)))
    return self.norm_after(norm, x.detach() + branch)


@fault(
    "encoder.attention-detached",
    clause="encoder.gradient",
    wrong="The output of self-attention is detached.",
    effect="The output is right; attention is never trained.",
    kind="gradient",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    attended = self.sound.self_attend(module, x, mask)
    return attended.detach() if module.step == "encoder_layer" else attended


# Modes


@fault(
    "encoder.upper-layers-always-train",
    clause="encoder.eval-reaches-every-layer",
    origin="B088",
    wrong="The switch to evaluation reaches the first layer alone.",
    effect="Evaluation is random from the second layer on.",
    kind="mode",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in list(module.layers)[1:]:
        layer.train()
    return self.sound.encoder(module, x, mask)


@fault(
    "encoder.dropout-without-mode",
    clause="encoder.eval-reaches-every-layer",
    origin="B100",
    wrong="Dropout after the sublayers is a function call without the training flag.",
    effect="Evaluation is random.",
    kind="mode",
    components=("encoder_layer",),
)
def drop_branch(self: Seams, module: Node, branch: Tensor) -> Tensor:
    rate = self.dropout_rate()
    if module.step != "encoder_layer" or rate == 0:
        return self.sound.drop_branch(module, branch)
    return self.drop(branch, rate)


@fault(
    "encoder.no-dropout-after-attention",
    clause="encoder.dropout-on-sublayers",
    origin="B103",
    wrong="Nothing is dropped of the output of self-attention.",
    effect="Half of the model is not regularised.",
    kind="mode",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    norm = self.norm_of(module, "self_attention")
    attended = self.self_attend(module, self.norm_before(norm, x), mask)
    x = self.norm_after(norm, self.add_branch(x, attended))
    return _wrapped(self, module, "feed_forward", x, mask)


@fault(
    "encoder.no-dropout-after-feed-forward",
    clause="encoder.dropout-on-sublayers",
    origin="B103",
    wrong="Nothing is dropped of the output of the feed-forward network.",
    effect="Half of the model is not regularised.",
    kind="mode",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    x = _wrapped(self, module, "self_attention", x, mask)
    norm = self.norm_of(module, "feed_forward")
    fed = self.feed(module, self.norm_before(norm, x))
    return self.norm_after(norm, self.add_branch(x, fed))


@fault(
    "encoder.dropout-on-the-wrong-tensor",
    clause="encoder.dropout-on-sublayers",
    origin="A",
    wrong="Dropout is applied to the input of the sum and not to what is added to it.",
    effect="The path that has to stay whole is cut.",
    kind="mode",
    components=("encoder_layer",),
)
def residual(self: Seams, module: Node, norm: nn.Module, x: Tensor, function: Function) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.residual(module, norm, x, function)
    branch = function(self.norm_before(norm, x))
    return self.norm_after(norm, self.drop_branch(module, x) + branch)


# Precision, shapes, side effects


@fault(
    "encoder.half-between-layers",
    clause="encoder.float32",
    wrong="States pass from layer to layer in float16.",
    effect="A left-over of mixed precision: three digits where seven were asked for.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.run_stack(module, x, lambda layer, inner: layer(inner.half().to(inner), mask))


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
    "encoder.half-becomes-single",
    clause="encoder.half-precision",
    wrong="Half precision goes in and float32 comes out.",
    effect="The next layer fails, or takes twice the memory.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    states = self.sound.encoder_layer(module, x, mask)
    return states.float() if x.dtype in HALVES else states


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
