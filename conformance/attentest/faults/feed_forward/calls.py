"""Faults in modes and side effects."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "feed_forward.dropout-in-evaluation",
    clause="feed_forward.dropout-only-in-training",
    wrong="A functional dropout does not ask for the mode.",
    effect="Evaluation is random.",
    kind="mode",
)
def drop_inner(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    return self.drop(x, self.dropout_rate()) if self.dropout_rate() > 0 else x


@fault(
    "feed_forward.rescaled-in-evaluation",
    clause="feed_forward.dropout-only-in-training",
    wrong="Evaluation multiplies by what dropout keeps, though training has divided by it.",
    effect="Every number is shifted once there is a dropout rate.",
    kind="mode",
)
def drop_inner(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    return self.dropout(module, x) if module.training else x * (1.0 - self.dropout_rate())


@fault(
    "feed_forward.rectified-in-place",
    clause="feed_forward.input-untouched",
    wrong="An activation in place is applied to the caller's own array as well.",
    effect="The residual connection adds a rectified input.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    result = self.sound.feed_forward(module, x)
    x.data.clamp_(min=0)
    return result


@fault(
    "feed_forward.output-written-back",
    clause="feed_forward.input-untouched",
    wrong="The output is also written into the input.",
    effect="The residual connection adds the output twice.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    result = self.sound.feed_forward(module, x)
    x.data.copy_(result)
    return result


@fault(
    "feed_forward.dropout-not-scaled",
    clause="feed_forward.dropout-only-in-training",
    wrong="Numbers are dropped in training, and those that stay are not scaled up.",
    effect="Activations are smaller in training than ever after.",
    kind="mode",
)
def drop_inner(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    rate = self.dropout_rate() if self.is_training(module) else 0.0
    return x * (torch.rand_like(x) >= rate)
