"""A recipe for decoding with a cache, of pure functions that begin, continue and reorder one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from attentest_spec.jax.backend import Recipe
from attentest_spec.jax.computing import Key
from attentest_spec.mapping import Table
from attentest_spec.sizes import Sizes
from attentest_spec.stepwise import Stepwise


def cached_decoding(
    build: Callable[[Sizes, Any], Any],
    init: Callable[[Any, Key], Any],
    *,
    start: Callable[[Any, Any, Any], Any],
    step: Callable[[Any, Any, Any, Any], tuple[Any, Any]],
    reorder: Callable[[Any, Any, Any, Any], Any] | None = None,
    parameters: Table,
) -> Recipe:
    """Return the recipe of `cached_decoding`; a cache may be any tree, and stays behind it.

    `start` takes what was built, the parameters and source tokens (B, S), and returns a cache.
    `step` takes what was built, the parameters, a cache and new tokens (B, N), and returns their
    scores (B, N, V) and a cache. `reorder` takes what was built, the parameters, a cache and the
    row (B,) that each row goes on from. The lengths of the chunks are no traced numbers: the
    program is not compiled, and the functions may be.
    """
    return Recipe(build, init, _Program(start, step, reorder), {}, parameters, compiled=False)


@dataclass(frozen=True)
class _Program:
    """The calls of `cached_decoding`, carried out on caches."""

    start: Callable[..., Any]
    step: Callable[..., Any]
    reorder: Callable[..., Any] | None

    def __call__(
        self,
        built: Any,
        own: Any,
        key: Key,
        source: Any,
        target: Any,
        chunks: Any,
        after: Any,
        origin: Any,
    ) -> Any:
        functions = (self.start, self.step, self.reorder)
        given = (None if one is None else partial(one, built, own) for one in functions)
        parts = np.split(np.asarray(target), np.cumsum(chunks)[:-1], axis=1)
        steps = Stepwise(*given)  # type: ignore[arg-type]  # the last one alone may be None
        tokens = [(jnp.asarray(one),) for one in parts]
        return jnp.concatenate(
            steps.scores(jnp.asarray(source), tokens, after.tolist(), origin), axis=1
        )
