"""Attention that takes queries, keys and values in one tensor, with projections around it.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import words
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Read, Wrapper, fitting

_COMPONENTS = ("attention", "multi_head_attention")
_NAMES = words("qkv packedqkv qkvpacked mixedqkv querieskeysvalues")
"""Names of a tensor with queries, keys and values in it."""


class Packed(nn.Module):
    """Projects x by one matrix into what `attention` takes, and its result by another.

    Both have `width` rows or a multiple of it. With `columns_first`, `attention` takes and returns
    (B, D, T).
    """

    def __init__(self, attention: nn.Module, width: int, *, columns_first: bool) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.attention, self.columns_first = attention, columns_first
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the projected heads (B, T, D) of `x` (B, T, D)."""
        rows = self.qkv(x)
        found = self.attention(rows.mT).mT if self.columns_first else self.attention(rows)
        return self.output(found)  # type: ignore[no-any-return]  # of torch


PACKED_SOURCE = "\n".join(
    [
        "from torch import Tensor, nn",
        "",
        "",
        inspect.getsource(Packed),
    ]
)
"""The class as code of its own, for a reproduction or a written adapter."""

_SENTENCE = (
    "assumed that {} has queries, keys and values in one tensor, {}: it is judged between the "
    "projections of its caller"
)
_SHAPES = {False: "(B, T, 3 D)", True: "(B, 3 D, T)"}

B = TypeVar("B", bound=Read)


def packed_by_caller(code: Code, reading: Reading, read: Callable[[Code, Reading], B]) -> B | None:
    """Return the backend of attention on one tensor between projections, None for other code."""
    if code.component not in _COMPONENTS or code.wrapper is not None or reading.strict:
        return None
    own = [squashed(name) for name in code.signature.parameters]
    if len(own) != 1 or own[0] not in _NAMES or code.construction is None:
        return None
    signature = inspect.signature(Packed.forward)
    called = signature.replace(parameters=[*signature.parameters.values()][1:])
    inside = replace(code, component="multi_head_attention", signature=called)
    argument = next(iter(code.signature.parameters))
    around = [_wrapper(argument, first) for first in _SHAPES]
    answered = [inside.wrapped(one) for one in around if _answers(inside.wrapped(one))]
    if len(answered) == 1:
        return read(answered[0], reading)
    tried = (fitting(one, reading, read) for one in answered)
    return next((one for one in tried if one is not None), None)


def _wrapper(argument: str, first: bool) -> Wrapper:
    sentence = _SENTENCE.format(argument, _SHAPES[first])
    options = {"columns_first": first}
    return Wrapper(Packed, PACKED_SOURCE, WIDTH, sentence, options, known=frozenset(["d_model"]))


def _answers(code: Code) -> bool:
    """Say whether what `code` builds returns rows of the width of its input, and holds no more."""
    x = torch.randn(2, 5, SIZES.d_model, generator=torch.Generator().manual_seed(0))
    try:
        with undisturbed():
            built = code.build(SIZES)
            found = built(x)
    except Exception:  # code that a user wrote may raise anything
        return False
    held = [name for name, _ in built.named_parameters() if name.startswith("attention.")]
    return not held and isinstance(found, Tensor) and found.shape == x.shape
