"""Faults in the sublayers of a layer, their order, norms and the paths around them."""

from torch import Tensor

from attentest.faults.decoder.shared import SUBLAYERS, all_but, steps_of, wrapped
from attentest.faults.fault import fault
from attentest.faults.reference_models import Function, Hooks, Mask, Node


@fault("decoder.masks-exchanged", "layer-formula", seam="decoder_layer", kind="loud")
def masks_exchanged(
    self: Hooks,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    """Self-attention is given the source mask, attention to the memory the target mask.

    An error where the lengths differ; where they agree, it sees ahead and trains.
    """
    return self.correct.decoder_layer(module, x, memory, target_mask, source_mask)


@fault("decoder.attentions-exchanged", "layer-formula", seam="sublayer_of")
def attentions_exchanged(self: Hooks, module: Node, name: str) -> Node:
    """The projections of the two attentions are exchanged.

    A checkpoint of another library loads without complaint and gives nonsense.
    """
    exchanged = {"self_attention": "cross_attention", "cross_attention": "self_attention"}
    other = exchanged.get(name, name) if module.step == "decoder_layer" else name
    return self.correct.sublayer_of(module, other)


@fault("decoder.memory-first", "order-of-sublayers", seam="decoder_order")
def memory_first(self: Hooks) -> tuple[str, ...]:
    """Attention to the memory comes first. It is another model with the same shapes."""
    return "cross_attention", "self_attention", "feed_forward"


@fault("decoder.feed-forward-in-the-middle", "order-of-sublayers", seam="decoder_order")
def feed_forward_in_the_middle(self: Hooks) -> tuple[str, ...]:
    """The feed-forward network comes before the attention to the memory.

    Another model with the same parameters and shapes.
    """
    return "self_attention", "feed_forward", "cross_attention"


@fault("decoder.attentions-side-by-side", "order-of-sublayers", seam="decoder_layer")
def attentions_side_by_side(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """Both attentions read the input of the layer, and their results are added.

    What a step asks of the memory does not depend on the steps before it.
    """
    steps = steps_of(self, module, memory, *masks)
    first, second = (wrapped(self, module, one, x, steps[one]) for one in SUBLAYERS[:2])
    return wrapped(self, module, "feed_forward", first + second - x, steps["feed_forward"])


def _without_skip(
    self: Hooks, module: Node, x: Tensor, steps: dict[str, Function], name: str
) -> Tensor:
    """Apply the sublayers in turn, without the path around `name`."""
    norm = self.norm_of(module, name)

    def alone(inner: Tensor) -> Tensor:
        branch = self.drop_branch(module, steps[name](self.norm_before(norm, inner)))
        return self.norm_after(norm, branch)

    return all_but(self, module, x, steps, name, alone)


@fault(
    "decoder.no-skip-around-self-attention", "skip-connections", seam="decoder_layer", origin="B075"
)
def no_skip_around_self_attention(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """There is no path around self-attention. Every step is replaced by what it gathered."""
    steps = steps_of(self, module, memory, *masks)
    return _without_skip(self, module, x, steps, "self_attention")


@fault("decoder.no-skip-around-the-memory", "skip-connections", seam="decoder_layer", origin="B075")
def no_skip_around_the_memory(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """There is no path around the attention to the memory.

    A step forgets the target as soon as it has read the source.
    """
    steps = steps_of(self, module, memory, *masks)
    return _without_skip(self, module, x, steps, "cross_attention")


@fault(
    "decoder.no-skip-around-feed-forward", "skip-connections", seam="decoder_layer", origin="B075"
)
def no_skip_around_feed_forward(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """There is no path around the feed-forward network. Deep stacks stop learning."""
    steps = steps_of(self, module, memory, *masks)
    return _without_skip(self, module, x, steps, "feed_forward")


@fault("decoder.first-norm-three-times", "separate-norms", seam="norm_of", origin="B")
def first_norm_three_times(self: Hooks, module: Node, name: str) -> Node:
    """The first norm is used for all sublayers. Two norms are never trained."""
    first = module.step == "decoder_layer"
    return self.correct.norm_of(module, "self_attention" if first else name)


@fault("decoder.second-norm-twice", "separate-norms", seam="norm_of", origin="B069")
def second_norm_twice(self: Hooks, module: Node, name: str) -> Node:
    """The second norm is used in place of the third. The third norm is never trained."""
    third = module.step == "decoder_layer" and name == "feed_forward"
    return self.correct.norm_of(module, "cross_attention" if third else name)
