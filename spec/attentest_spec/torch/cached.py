"""Recipes for decoding with a cache, of functions that begin, continue and reorder one."""

from collections.abc import Callable, Sequence
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
        parts = [(one,) for one in torch.split(target, chunks.tolist(), dim=1)]
        steps = _stepwise(built, self)
        return torch.cat(steps.scores(source, parts, after.tolist(), origin), dim=1)


def cached_language_model(
    build: Callable[[Sizes], Any],
    *,
    start: Callable[[Any, int], Any],
    step: Callable[[Any, Any, Tensor, Tensor | None, Tensor | None], Step],
    reorder: Callable[[Any, Any, Tensor], Any] | None = None,
    parameters: Table,
) -> Recipe:
    """Return the recipe of `cached_language_model`; a cache may be any object, as above.

    `start` takes what was built and the number of rows B. `step` takes what was built, a cache,
    new tokens (B, N), the mask (B, L) of all tokens so far, or None, and the positions (B, N) of
    the new ones, or None. `reorder` is that of :func:`cached_decoding`. `parameters` is the
    parameter map of the language model.
    """
    return Recipe(build, call=_TextProgram(start, step, reorder), parameters=parameters)


@dataclass(frozen=True)
class _TextProgram:
    """The calls of `cached_language_model`, carried out on caches."""

    start: Callable[[Any, int], Any]
    step: Callable[..., Step]
    reorder: Callable[[Any, Any, Tensor], Any] | None

    def __call__(
        self,
        built: Any,
        tokens: Tensor,
        mask: Tensor | None,
        positions: Tensor | None,
        chunks: Tensor,
        after: Tensor,
        origin: Tensor,
    ) -> Tensor:
        counts, earlier = chunks.tolist(), after.tolist()
        new, seen, places = (
            [None] * len(counts) if one is None else list(torch.split(one, counts, dim=1))
            for one in (tokens, mask, positions)
        )
        parts = list(zip(new, _so_far(seen, earlier, origin), places, strict=True))
        steps = _stepwise(built, self)
        return torch.cat(steps.scores(len(tokens), parts, earlier, origin), dim=1)


def _so_far(
    seen: Sequence[Tensor | None], after: Sequence[int], origin: Tensor
) -> list[Tensor | None]:
    """Return the mask (B, L) of all tokens up to each chunk, for those (B, N) of the chunks."""
    found: list[Tensor | None] = []
    for new, earlier, rows in zip(seen, after, origin, strict=True):
        before = found[earlier] if earlier >= 0 else None
        joined = before is not None and new is not None
        found.append(torch.cat([before[rows], new], dim=1) if joined else new)  # type: ignore[index, list-item]
    return found


def _stepwise(built: Any, program: "_Program | _TextProgram") -> Stepwise:
    """Return the functions of a program, given what was built."""
    functions = (program.start, program.step, program.reorder)
    given = (None if one is None else partial(one, built) for one in functions)
    return Stepwise(*given)  # type: ignore[arg-type]  # the last one alone may be None
