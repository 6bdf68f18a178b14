"""Faults in the sublayers of a layer, their order, norms and the paths around them."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from collections.abc import Callable

from torch import Tensor, nn

from attentest.faults.decoder.shared import SUBLAYERS, all_but, steps_of, wrapped
from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams

Function = Callable[[Tensor], Tensor]


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
    steps = steps_of(self, module, memory, source_mask, target_mask)
    first, second = (wrapped(self, module, one, x, steps[one]) for one in SUBLAYERS[:2])
    return wrapped(self, module, "feed_forward", first + second - x, steps["feed_forward"])


def _without_skip(
    self: Seams, module: Node, x: Tensor, steps: dict[str, Function], name: str
) -> Tensor:
    """Apply the sublayers in turn, without the path around `name`."""
    norm = self.norm_of(module, name)

    def alone(inner: Tensor) -> Tensor:
        branch = self.drop_branch(module, steps[name](self.norm_before(norm, inner)))
        return self.norm_after(norm, branch)

    return all_but(self, module, x, steps, name, alone)


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
    steps = steps_of(self, module, memory, source_mask, target_mask)
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
    steps = steps_of(self, module, memory, source_mask, target_mask)
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
    steps = steps_of(self, module, memory, source_mask, target_mask)
    return _without_skip(self, module, x, steps, "feed_forward")


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
