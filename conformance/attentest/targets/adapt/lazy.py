"""Lazy modules of torch, whose parameters get their shapes at the first call."""

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from attentest.targets.adapt.probing import undisturbed
from attentest_spec import Sizes


def materialised(made: Any, sizes: Sizes) -> Any:
    """Return `made`, whose lazy parameters have shapes where one call at `sizes` gives them."""
    if not isinstance(made, nn.Module) or not any(is_lazy(one) for one in made.parameters()):
        return made
    for given in _inputs(made, sizes):
        try:
            with undisturbed(), torch.no_grad():
                made(*given)
        except Exception:  # code that a user wrote may raise anything
            continue
        if not any(is_lazy(one) for one in made.parameters()):
            break
    return made


def _inputs(made: nn.Module, sizes: Sizes) -> Iterator[list[Tensor | None]]:
    """Yield vectors and then tokens for the required arguments, the last of which may be None."""
    called = inspect.signature(made.forward).parameters.values()
    needed = [one for one in called if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    for x in (torch.zeros(1, 3, sizes.d_model), torch.ones(1, 3, dtype=torch.int64)):
        for count in range(len(needed), 0, -1):
            yield [x] * count + [None] * (len(needed) - count)
