"""Faults in gradients and modes."""

import torch
from torch import Tensor

from attentest.faults.encoder.sublayers import wrapped
from attentest.faults.fault import fault
from attentest.faults.reference_models import Function, Hooks, Mask, Node


@fault(
    "encoder.only-the-last-layer-trained",
    "every-parameter-reached",
    seam="encoder",
    kind="gradient",
)
def only_the_last_layer_trained(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """All layers but the last run without gradients. The lower layers are never trained."""
    layers = list(module.layers)
    with torch.no_grad():
        below = x
        for layer in layers[:-1]:
            below = layer(below, mask)
    return self.finish_stack(module, layers[-1](x + (below - x).detach(), mask))


@fault("encoder.attention-detached", "gradient", seam="self_attend", kind="gradient")
def attention_detached(self: Hooks, module: Node, x: Tensor, mask: Mask) -> Tensor:
    """The output of self-attention is detached. The output is right; attention is never trained."""
    attended = self.correct.self_attend(module, x, mask)
    return attended.detach() if module.step == "encoder_layer" else attended


@fault(
    "encoder.no-dropout-after-attention",
    "dropout-on-sublayers",
    seam="encoder_layer",
    origin="B103",
    kind="mode",
)
def no_dropout_after_attention(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The self-attention output is not dropped. Half of the model is not regularised."""
    norm = self.norm_of(module, "self_attention")
    attended = self.self_attend(module, self.norm_before(norm, x), mask)
    x = self.norm_after(norm, self.add_branch(x, attended))
    return wrapped(self, module, "feed_forward", x, mask)


@fault(
    "encoder.no-dropout-after-feed-forward",
    "dropout-on-sublayers",
    seam="encoder_layer",
    origin="B103",
    kind="mode",
)
def no_dropout_after_feed_forward(
    self: Hooks, module: Node, x: Tensor, mask: Mask = None
) -> Tensor:
    """The feed-forward output is not dropped. Half of the model is not regularised."""
    x = wrapped(self, module, "self_attention", x, mask)
    norm = self.norm_of(module, "feed_forward")
    fed = self.feed(module, self.norm_before(norm, x))
    return self.norm_after(norm, self.add_branch(x, fed))


@fault(
    "encoder.dropout-on-the-wrong-tensor",
    "dropout-on-sublayers",
    seam="residual",
    origin="A",
    kind="mode",
    in_layer=True,
)
def dropout_on_the_wrong_tensor(
    self: Hooks, module: Node, norm: Node, x: Tensor, function: Function
) -> Tensor:
    """Dropout is applied to the input of the sum and not to what is added to it.

    The path that has to stay whole is cut.
    """
    if module.step != "encoder_layer":
        return self.correct.residual(module, norm, x, function)
    branch = function(self.norm_before(norm, x))
    return self.norm_after(norm, self.drop_branch(module, x) + branch)
