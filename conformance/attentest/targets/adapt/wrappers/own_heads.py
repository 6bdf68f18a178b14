"""One matrix for every head: attention is judged with one for the columns of all heads.

The class and the function need nothing else of the suite: reproductions and written adapters
contain their source.
"""

import inspect
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class OfAllHeads(nn.Linear):
    """A matrix (D, D) in the place of `one` (D/H, D/H) that every head gets, on its own `axis`."""

    def __init__(self, one: nn.Linear, heads: int, axis: int) -> None:
        has_bias, width = one.bias is not None, one.in_features
        super().__init__(heads * one.in_features, heads * one.out_features, bias=has_bias)
        self.axis = axis
        with torch.no_grad():
            self.weight.zero_()
            for start in range(0, heads * width, width):
                self.weight[start : start + width, start : start + width] = one.weight
            if has_bias:
                self.bias.copy_(one.bias.repeat(heads))
        self.to(one.weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Return the columns of all heads, mapped, in the layout of x."""
        last = x.movedim(self.axis, -2)
        mapped = super().forward(last.flatten(-2))
        return mapped.reshape(last.shape).movedim(-2, self.axis)


def own_heads(model: nn.Module, names: Sequence[str], axis: int, heads: int) -> nn.Module:
    """Return `model` with a matrix for all heads in the place of each that ends with a name."""
    for path, one in list(model.named_modules()):
        above, _, name = path.rpartition(".")
        if heads > 1 and name in names and isinstance(one, nn.Linear):
            setattr(model.get_submodule(above), name, OfAllHeads(one, heads, axis))
    return model


OWN_HEADS_SOURCE = "\n".join(
    [
        *("from collections.abc import Sequence", "", "import torch"),
        *("from torch import Tensor, nn", "", ""),
        *(inspect.getsource(OfAllHeads), "", inspect.getsource(own_heads)),
    ]
)
"""The class and the function as code, for a reproduction or a written adapter."""

_ONE = (
    "assumed that one matrix for every head is meant ({}), which maps the columns of that head "
    "alone: with projections of all columns, as those of Vaswani et al. 2017 are, it is a mistake. "
    "This spec has those, and it is judged with one for the columns of all heads in each place"
)


def one_for_heads(names: Sequence[str]) -> list[str]:
    """Return what is assumed of the matrices `names`, nothing for none."""
    return [_ONE.format(", ".join(names))] if names else []
