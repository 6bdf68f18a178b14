"""Tables of positions whose number of rows is fixed: models are judged with as many as are asked.

The function needs nothing else of the suite: written adapters contain its source.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.models.trials import Building
from attentest_spec import Sizes

LEAST = 8
"""The least number of rows of a table that is taken for one of positions."""


def resized(model: nn.Module, rows: int, tables: Mapping[str, int]) -> nn.Module:
    """Return `model` with `rows` rows, along the axis given, in each of its `tables` by name."""
    for name, axis in tables.items():
        path, _, _ = name.rpartition(".")
        own, holder = model.get_parameter(name), model.get_submodule(path)
        shape = list(own.shape)
        shape[axis] = rows
        own.data = torch.randn(shape, dtype=own.dtype, device=own.device)
        if isinstance(holder, nn.Embedding):
            holder.num_embeddings = rows
    return model


RESIZED_SOURCE = "\n".join(
    ["from collections.abc import Mapping", "from torch import nn", "", "", ""]
) + inspect.getsource(resized)
"""The function as code of its own, for a reproduction or a written adapter."""

SAID = (
    "assumed that the {} rows of {} are a greatest length, and no design: it is judged with as "
    "many rows as its sequences need"
)


def with_free_rows(built: Building) -> Building:
    """Return `built` with as many rows of positions as the sizes say, where their number is fixed.

    It is returned as it is where its constructor takes a length, or holds no such tables.
    """
    if "max_length" in built.known:
        return built
    fixed = fixed_tables(built, _DIFFERENT)
    if not 1 <= len(fixed) <= 2:
        return built
    counts = dict.fromkeys(str(rows) for _, rows in fixed.values())
    said = SAID.format(" and ".join(counts), " and ".join(fixed))
    return replace(
        built,
        expression=resizing(built.expression, fixed),
        space={**built.space, resized.__name__: resized},
        said=(*built.said, said),
        doubts=(*built.doubts, said),
        rows=min(rows for _, rows in fixed.values()),
    )


def fixed_tables(
    build: Callable[[Sizes], Any], tried: Sequence[Sizes]
) -> dict[str, tuple[int, int]]:
    """Return the axis and the number of the rows of tables, the same at all `tried` sizes."""
    try:
        with undisturbed():
            found, other = (_tables(build(sizes), sizes) for sizes in tried)
    except Exception:  # code that a user wrote may raise anything
        return {}
    return {name: place for name, place in found.items() if other.get(name) == place}


def resizing(expression: str, fixed: Mapping[str, tuple[int, int]]) -> str:
    """Return the expression of a model with as many rows in its `fixed` tables as are asked."""
    axes = {name: axis for name, (axis, _) in fixed.items()}
    return f"{resized.__name__}({expression}, sizes.max_length, {axes})"


_DIFFERENT = [
    DISTINCT.but(d_model=width, d_ff=2 * width, source_vocabulary=rows, target_vocabulary=rows)
    for width, rows in ((35, 23), (55, 41))
]
"""Two sets of sizes without a number in common: what stays the same is fixed."""


def _tables(model: Any, sizes: Sizes) -> dict[str, tuple[int, int]]:
    """Return the axis and the number of the rows of each trained table as wide as the model."""
    found = {}
    for name, own in model.named_parameters():
        axis = _rows_of(own, sizes.d_model)
        holder = model.get_submodule(name.rpartition(".")[0])
        if axis is not None and own.shape[axis] >= LEAST and not isinstance(holder, nn.Linear):
            found[name] = axis, own.shape[axis]
    return found


def _rows_of(own: Tensor, width: int) -> int | None:
    """Return the axis of the rows of a table that ends in the `width`, None for what is none."""
    long = [axis for axis, length in enumerate(own.shape) if length != 1]
    if own.dim() not in (2, 3) or len(long) != 2 or own.shape[-1] != width:
        return None
    return long[0]
