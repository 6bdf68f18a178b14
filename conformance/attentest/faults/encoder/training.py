"""Faults in gradients and modes."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attentest.faults.encoder.shared import wrapped
from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams

Function = Callable[[Tensor], Tensor]


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
    "encoder.attention-detached",
    clause="encoder.gradient",
    wrong="The output of self-attention is detached.",
    effect="The output is right; attention is never trained.",
    kind="gradient",
)
def self_attend(self: Seams, module: Node, x: Tensor, mask: Mask) -> Tensor:
    attended = self.sound.self_attend(module, x, mask)
    return attended.detach() if module.step == "encoder_layer" else attended


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
    return wrapped(self, module, "feed_forward", x, mask)


@fault(
    "encoder.no-dropout-after-feed-forward",
    clause="encoder.dropout-on-sublayers",
    origin="B103",
    wrong="Nothing is dropped of the output of the feed-forward network.",
    effect="Half of the model is not regularised.",
    kind="mode",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    x = wrapped(self, module, "self_attention", x, mask)
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
