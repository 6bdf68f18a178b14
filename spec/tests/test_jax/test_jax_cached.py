"""Decoding with a cache in JAX: programs of chunks, on a model whose cache is a sum."""

from typing import Any

import numpy as np
import pytest

from attentest_spec.contract import Unsupported
from attentest_spec.sizes import Sizes

jax: Any = pytest.importorskip("jax")
jnp = jax.numpy

from attentest_spec.jax import JaxBackend, cached_decoding  # noqa: E402  # where JAX is

SIZES = Sizes(target_vocabulary=5, source_vocabulary=5)
SOURCE = np.array([[1, 2], [1, 2]])
TARGET = np.array([[3, 1, 4, 2], [0, 2, 3, 3]])
ROWS = np.arange(2)


def _init(built: Any, key: Any) -> Any:
    return {"table": jax.random.normal(key, (5, 5), built[1])}


def _start(built: Any, own: Any, source: Any) -> Any:
    return own["table"][source].sum(axis=1)


@jax.jit
def _forward(table: Any, total: Any, tokens: Any) -> Any:
    sums = total[:, None] + jnp.cumsum(table[tokens], axis=1)
    return sums @ table.T, sums[:, -1]


def _step(built: Any, own: Any, total: Any, tokens: Any) -> Any:
    return _forward(own["table"], total, tokens)


def _part(*, reorder: Any = lambda built, own, total, rows: total[rows]) -> Any:
    recipe = cached_decoding(
        lambda sizes, kind: (sizes, np.dtype(kind)),
        _init,
        start=_start,
        step=_step,
        reorder=reorder,
        parameters={},
    )
    recipes = {"cached_decoding": recipe}
    return JaxBackend(name="sums", title="sums in JAX", recipes=recipes).build(
        "cached_decoding", SIZES
    )


def _called(part: Any, chunks: list[int], after: list[int], origin: Any = None) -> Any:
    origin = np.tile(ROWS, (len(chunks), 1)) if origin is None else np.array(origin)
    return part(SOURCE, TARGET, np.array(chunks), np.array(after), origin)


@pytest.mark.parametrize("chunks", [[1, 1, 1, 1], [3, 1], [2, 2]])
def test_chunks_equal_the_whole(chunks: list[int]) -> None:
    part = _part()
    found = _called(part, chunks, list(range(-1, len(chunks) - 1)))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, _called(part, [4], [-1]), rtol=1e-13)


def test_rows_that_are_exchanged_continue_the_other_prefix() -> None:
    part = _part()
    found = _called(part, [2, 2], [-1, 0], [[0, 1], [1, 0]])
    crossed = np.concatenate([TARGET[::-1, :2], TARGET[:, 2:]], axis=1)
    expected = part(SOURCE, crossed, np.array([4]), np.array([-1]), ROWS[None])
    np.testing.assert_allclose(found[:, 2:], expected[:, 2:], rtol=1e-13)


def test_cache_that_is_not_reordered_is_not_supported() -> None:
    with pytest.raises(Unsupported, match="reorder"):
        _called(_part(reorder=None), [2, 2], [-1, 0], [[0, 1], [1, 0]])
