"""Positions of no option that a class adds to the rows of its tokens: a part that is judged too."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders.entering import Entering, OtherPositions
from attentest.targets.adapt.encoders.wrapping import Wrapping
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading
from attentest_spec import Sizes
from attentest_spec.torch import Recipe

COMPONENT = "positional_encoding"
JUDGED = "judged as positional_encoding, besides its layers"
_LONGEST = 11


@dataclass(frozen=True)
class AddedRows:
    """Rows with the positions that a class adds to those of its tokens, up to a `longest` text.

    A `length` is that of all texts that the class takes, 0 where it takes several.
    """

    entering: Entering
    longest: int
    length: int = 0

    def __call__(self, x: Tensor) -> Tensor:
        """Return the rows `x` (B, L, D) with positions; ValueError for too many of them."""
        if x.shape[1] > self.longest:
            raise ValueError(f"{x.shape[1]} positions are more than {self.longest}")
        return self.entering.rows_added(x, self.length)


def added_at(
    wrapping: Wrapping, built: Construction, tables: Sequence[str], length: int, sizes: Sizes
) -> Callable[[Tensor], Tensor]:
    """Return what adds the positions of a class that is `built` at `sizes`.

    A `length` is that of all texts, 0 where it takes several.
    """
    with undisturbed():
        whole = built(sizes).double().eval()
    start = f"{wrapping.path}." if wrapping.path else ""
    own = [one.removeprefix(start) for one in tables]
    one = length or min(sizes.max_length, _LONGEST)
    entering = Entering(replace(wrapping, whole=whole, sizes=sizes), own, one)
    return AddedRows(entering, sizes.max_length, length)


def is_added(mismatch: OtherPositions) -> bool:
    """Say whether what adds the positions can be called with texts of several lengths."""
    sizes = Sizes(heads=1, max_length=40)
    try:
        add = mismatch.added(sizes) if mismatch.added is not None else None
        rows = [torch.zeros(2, length, sizes.d_model) for length in (1, 2, 3, 40)]
        return add is not None and all(add(one).shape == one.shape for one in rows)
    except Exception:  # code that a user wrote may raise anything
        return False


def with_positions(backend: Any, stack: Code | None, reading: Reading) -> Any:
    """Return `backend` with the positions of its class as a component, where it says so."""
    if stack is None or stack.entering is None or reading.anyway:
        return backend
    if not any(JUDGED in one for one in getattr(backend, "assumed", ())):
        return backend
    try:
        stack.entering()
    except OtherPositions as mismatch:
        if mismatch.added is not None:
            recipe = Recipe(mismatch.added)
            return replace(backend, recipes={**backend.recipes, COMPONENT: recipe})
    return backend
