"""The RMS norms of the two reference models: by a mean and a division, and by products."""

import torch
from torch import Tensor, nn

from attentest.faults.reference_models.hooks import Hooks
from attentest.faults.reference_models.modules import Node


class PlainRms(Hooks):
    """A mean of squares, and a division."""

    def make_norm_of_rows(self, width: int) -> Node:
        """Build an RMS norm of rows of `width` columns."""
        weight = self.choices.rms_weight
        first = torch.zeros(width) if weight == "one-plus-weight" else torch.ones(width)
        return Node(
            self,
            "rms_norm",
            gain=None if weight == "none" else nn.Parameter(first),
            bias=nn.Parameter(torch.zeros(width)) if self.choices.rms_bias == "present" else None,
        )

    def mean_square(self, x: Tensor) -> Tensor:
        """Return the mean of the squares over the columns, as (.., 1)."""
        return x.pow(2).mean(dim=-1, keepdim=True)

    def divide_row(self, x: Tensor, divisor: Tensor) -> Tensor:
        """Return the rows divided by their divisor (.., 1)."""
        return x / divisor

    def row_weight(self, module: Node) -> Tensor | None:
        """Return what a row is multiplied by, None for nothing."""
        weight: Tensor | None = module.gain
        if weight is None or self.choices.rms_weight == "weight":
            return weight
        return 1.0 + widened(weight)

    def row_bias(self, module: Node) -> Tensor | None:
        """Return what is added to a row, None for nothing."""
        bias: Tensor | None = module.bias
        return bias


class FusedRms(Hooks):
    """A product of each row with itself, and a product with the inverse."""

    def make_norm_of_rows(self, width: int) -> Node:
        """Build an RMS norm of rows of `width` columns."""
        node = Node(self, "rms_norm", scale=None, shift=None)
        start = 0.0 if self.choices.rms_weight == "one-plus-weight" else 1.0
        if self.choices.rms_weight != "none":
            node.scale = nn.Parameter(torch.full((width,), start))
        if self.choices.rms_bias == "present":
            node.shift = nn.Parameter(torch.zeros(width))
        return node

    def mean_square(self, x: Tensor) -> Tensor:
        """Return the mean of the squares over the columns, as (.., 1)."""
        return torch.einsum("...d,...d->...", x, x)[..., None] / x.shape[-1]

    def divide_row(self, x: Tensor, divisor: Tensor) -> Tensor:
        """Return the rows times the inverse of their divisor (.., 1)."""
        return x * divisor.reciprocal()

    def row_weight(self, module: Node) -> Tensor | None:
        """Return what a row is multiplied by, None for nothing."""
        weight: Tensor | None = module.scale
        if weight is None or self.choices.rms_weight == "weight":
            return weight
        return torch.add(widened(weight), 1.0)

    def row_bias(self, module: Node) -> Tensor | None:
        """Return what is added to a row, None for nothing."""
        bias: Tensor | None = module.shift
        return bias


def widened(weight: Tensor) -> Tensor:
    """Return a weight of half precision as float32: 1 is added to it there."""
    return weight.to(torch.promote_types(weight.dtype, torch.float32))
