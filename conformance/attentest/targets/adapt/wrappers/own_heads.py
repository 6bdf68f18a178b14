"""Attention with matrices of one head, or without an output: judged with matrices of all columns.

The classes and the function need nothing else of the suite: reproductions and written adapters
contain their source.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

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


class OfSlices(nn.Linear):
    """A matrix (D, D) in the place of a list of `parts` (D/H, D/H), one for the columns of a head.

    A part gets its columns of the rows that the attention `whole` gets, of all samples or of one
    after the other, and gives those columns of the rows that the matrix maps.
    """

    def __init__(self, parts: nn.ModuleList, whole: nn.Module) -> None:
        held = [one for one in parts if isinstance(one, nn.Linear)]
        width, has_bias = held[0].in_features, held[0].bias is not None
        super().__init__(len(held) * width, len(held) * width, bias=has_bias)
        self.number = len(held)
        with torch.no_grad():
            self.weight.zero_()
            for head, one in enumerate(held):
                start = head * width
                self.weight[start : start + width, start : start + width] = one.weight
            if has_bias:
                self.bias.copy_(torch.cat([one.bias for one in held]))
        self.to(held[0].weight.dtype)
        self.rows: list[Tensor] = []
        self.calls = [0] * self.number
        whole.register_forward_pre_hook(self.enter, with_kwargs=True)
        whole.register_forward_hook(self.leave, always_call=True)

    def enter(self, _: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Hold what the attention gets."""
        given = [one for one in (*args, *named.values()) if isinstance(one, Tensor)]
        self.rows = [one for one in given if one.shape[-1:] == (self.in_features,)]
        self.calls = [0] * self.number

    def leave(self, *_: Any) -> None:
        """Hold nothing after the call."""
        self.rows = []

    def __len__(self) -> int:
        """Return the number of heads."""
        return self.number

    def __iter__(self) -> Iterator[Callable[[Tensor], Tensor]]:
        """Yield the part of each head."""
        return iter([self[one] for one in range(self.number)])

    def __getitem__(self, head: int) -> Callable[[Tensor], Tensor]:
        """Return the part of a head."""
        return partial(self.part, range(self.number)[head])

    def part(self, head: int, x: Tensor) -> Tensor:
        """Return the columns of a head, mapped, where x are those of what the attention gets."""
        width = self.in_features // self.number
        own = slice(head * width, (head + 1) * width)
        for rows in self.rows:
            one = rows[self.calls[head] % len(rows)] if rows.dim() == x.dim() + 1 else rows
            same = one[..., own].shape == x.shape and (one[..., own] == x) | x.isnan()
            if isinstance(same, Tensor) and bool(same.all()):
                self.calls[head] += 1
                mapped: Tensor = self(one)
                return mapped[..., own]
        raise ValueError("a part of a head gets other rows than its columns of the input")


class WithOutput(nn.Module):
    """The first tensor that `attention` returns, projected by a matrix (D, D)."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        held = [one for one in attention.modules() if isinstance(one, nn.Linear)]
        self.output = nn.Linear(
            held[0].in_features, held[0].in_features, bias=held[0].bias is not None
        ).to(held[0].weight.dtype)

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what `attention` does, with the heads projected."""
        found = self.attention(*args, **named)
        if isinstance(found, tuple):
            return (self.output(found[0]), *found[1:])
        return self.output(found)


def own_heads(
    model: nn.Module,
    names: Sequence[str],
    axis: int,
    heads: int,
    outputs: Sequence[str] = (),
) -> nn.Module:
    """Return `model` with matrices of all heads in the place of those at the paths `names`.

    Numbers in the paths are written as *. There is one matrix for every head, on an `axis`, or a
    list of them. The attention at each of `outputs` gets a matrix behind it.
    """
    for every in (names, outputs):
        for path, one in list(model.named_modules()):
            above, _, name = path.rpartition(".")
            if re.sub(r"\b\d+\b", "*", path) not in every:
                continue
            whole = model.get_submodule(above)
            if every is outputs:
                setattr(whole, name, WithOutput(one))
            elif isinstance(one, nn.ModuleList):
                setattr(whole, name, OfSlices(one, whole))
            elif heads > 1 and isinstance(one, nn.Linear):
                setattr(whole, name, OfAllHeads(one, heads, axis))
    return model


OWN_HEADS_SOURCE = "\n".join(
    [
        *("import re", "from collections.abc import Callable, Iterator, Sequence"),
        *("from functools import partial", "from typing import Any", "", "import torch"),
        *("from torch import Tensor, nn", "", "", inspect.getsource(OfAllHeads), ""),
        *(inspect.getsource(OfSlices), "", inspect.getsource(WithOutput), ""),
        inspect.getsource(own_heads),
    ]
)
"""The classes and the function as code, for a reproduction or a written adapter."""

_ONE = (
    "assumed that one matrix for every head is meant ({}), which maps the columns of that head "
    "alone: with projections of all columns, as those of Vaswani et al. 2017 are, it is a mistake. "
    "This spec has those, and it is judged with one for the columns of all heads in each place"
)
_EACH = (
    "assumed that a matrix of its own for each head is meant ({}), which maps the columns of that "
    "head alone: with projections of all columns, as those of Vaswani et al. 2017 are, it is a "
    "mistake. This spec has those, and it is judged with one for the columns of all heads"
)
_WITHOUT = (
    "assumed that the attention in its layers ({}) has no output projection on purpose: it is "
    "judged with one behind it. If one is meant, this is a mistake, and --strict asks about it"
)


def one_for_heads(names: Sequence[str], axis: int, outputs: Sequence[str]) -> list[str]:
    """Return what is assumed of the matrices `names`, nothing for none."""
    own = ", ".join(sorted({one.rpartition(".")[2] for one in names}))
    said = [(_ONE if axis else _EACH).format(own)] if names else []
    return said + [_WITHOUT.format(", ".join(outputs))] * bool(outputs)
