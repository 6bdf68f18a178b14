"""A recipe for decoding with a cache, of functions that begin, continue and reorder one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attentest_spec.mapping import Table
from attentest_spec.sizes import Sizes
from attentest_spec.stepwise import Stepwise
from attentest_spec.torch.backend import Recipe

Step = tuple[Tensor, Any]
"""The scores (B, N, V) of N new tokens, and the cache to go on with."""


def cached_decoding(
    build: Callable[[Sizes], Any],
    *,
    start: Callable[[Any, Tensor], Any],
    step: Callable[[Any, Any, Tensor], Step],
    reorder: Callable[[Any, Any, Tensor], Any] | None = None,
    parameters: Table,
) -> Recipe:
    """Return the recipe of `cached_decoding`; a cache may be any object, and stays behind it.

    `start` takes what was built and source tokens (B, S), and returns a cache. `step` takes what
    was built, a cache and new tokens (B, N). `reorder` takes what was built, a cache and the row
    (B,) that each row goes on from, and returns a cache; without it no program that reorders is
    taken. `parameters` is the parameter map of the model.
    """
    return Recipe(build, call=_Program(start, step, reorder), parameters=parameters)


@dataclass(frozen=True)
class _Program:
    """The calls of `cached_decoding`, carried out on caches."""

    start: Callable[[Any, Tensor], Any]
    step: Callable[[Any, Any, Tensor], Step]
    reorder: Callable[[Any, Any, Tensor], Any] | None

    def __call__(
        self,
        built: Any,
        source: Tensor,
        target: Tensor,
        chunks: Tensor,
        after: Tensor,
        origin: Tensor,
    ) -> Tensor:
        functions = (self.start, self.step, self.reorder)
        given = (None if one is None else partial(one, built) for one in functions)
        steps = Stepwise(*given)  # type: ignore[arg-type]  # the last one alone may be None
        parts = torch.split(target, chunks.tolist(), dim=1)
        return torch.cat(steps.scores(source, parts, after.tolist(), origin), dim=1)
