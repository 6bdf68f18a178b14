"""Faults in modes and side effects."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault(
    "feed_forward.dropout-in-evaluation", "dropout-only-in-training", seam="drop_inner", kind="mode"
)
def dropout_in_evaluation(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """A functional dropout ignores the mode. Evaluation is random."""
    return self.drop(x, self.dropout_rate()) if self.dropout_rate() > 0 else x


@fault(
    "feed_forward.rescaled-in-evaluation",
    "dropout-only-in-training",
    seam="drop_inner",
    kind="mode",
)
def rescaled_in_evaluation(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Evaluation multiplies by what dropout keeps, though training has divided by it.

    Every number is shifted once there is a dropout rate.
    """
    return self.dropout(module, x) if module.training else x * (1.0 - self.dropout_rate())


@fault("feed_forward.rectified-in-place", "input-untouched", seam="feed_forward")
def rectified_in_place(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """An activation in place is applied to the caller's own array as well.

    The residual connection adds a rectified input.
    """
    result = self.correct.feed_forward(module, x)
    x.data.clamp_(min=0)
    return result


@fault("feed_forward.output-written-back", "input-untouched", seam="feed_forward")
def output_written_back(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The output is also written into the input. The residual connection adds the output twice."""
    result = self.correct.feed_forward(module, x)
    x.data.copy_(result)
    return result


@fault(
    "feed_forward.dropout-not-scaled", "dropout-only-in-training", seam="drop_inner", kind="mode"
)
def dropout_not_scaled(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Numbers are dropped in training, and those that stay are not scaled up.

    Activations are smaller in training than ever after.
    """
    rate = self.dropout_rate() if self.is_training(module) else 0.0
    return x * (torch.rand_like(x) >= rate)


@fault(
    "feed_forward.dropout-rate-doubled", "dropout-only-in-training", seam="drop_inner", kind="mode"
)
def dropout_rate_doubled(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The rate is doubled. A model asked to drop a tenth drops a fifth, and learns less."""
    rate = min(2 * self.dropout_rate(), 0.95)
    return self.drop(x, rate) if self.is_training(module) and rate > 0 else x


@fault(
    "feed_forward.dropout-scaled-by-the-nominal-rate",
    "dropout-only-in-training",
    seam="drop_inner",
    kind="mode",
)
def dropout_scaled_by_the_nominal_rate(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Twice as much is dropped as is made up for. Outputs are smaller in training."""
    rate = self.dropout_rate()
    if not self.is_training(module) or rate == 0:
        return x
    kept = torch.rand(x.shape) >= min(2 * rate, 0.95)
    return x * kept.to(x) / (1 - rate)
