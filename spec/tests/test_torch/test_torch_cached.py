"""The adapter of caches: which function is called for which chunk."""

from typing import Any

import numpy as np
import pytest
from torch import Tensor

from attentest_spec.contract import Unsupported
from attentest_spec.sizes import Sizes
from attentest_spec.torch import TorchBackend, cached_decoding

SOURCE, TARGET = np.zeros((2, 1), dtype=np.int64), np.arange(6).reshape(2, 3)
STRAIGHT = [[0, 1], [0, 1], [0, 1]]


class _Called:
    """Functions of a cache that is the list of what was done to it."""

    def __init__(self) -> None:
        self.caches: list[Any] = []

    def start(self, built: Any, source: Tensor) -> list[Any]:
        """Begin."""
        return ["start"]

    def step(self, built: Any, cache: list[Any], tokens: Tensor) -> tuple[Tensor, list[Any]]:
        """Append the tokens."""
        longer = [*cache, tokens.tolist()]
        self.caches.append(longer)
        return tokens[..., None].double(), longer

    def reorder(self, built: Any, cache: list[Any], rows: Tensor) -> list[Any]:
        """Append the rows."""
        return [*cache, rows.tolist()]


def _run(called: _Called, after: list[int], origin: list[list[int]], **functions: Any) -> Any:
    named = {"start": called.start, "step": called.step, "reorder": called.reorder, **functions}
    recipe = cached_decoding(lambda sizes: None, parameters={}, **named)
    backend = TorchBackend(name="one", title="one", recipes={"cached_decoding": recipe})
    part = backend.build("cached_decoding", Sizes())
    return part(SOURCE, TARGET, np.array([1, 1, 1]), np.array(after), np.array(origin))


def test_chunks_continue_the_caches_that_are_named() -> None:
    called = _Called()
    output = _run(called, [-1, -1, 0], STRAIGHT)
    first, second, third = [[0], [3]], [[1], [4]], [[2], [5]]
    assert called.caches == [["start", first], ["start", second], ["start", first, third]]
    np.testing.assert_array_equal(output[..., 0], TARGET)


def test_rows_are_reordered_before_the_step() -> None:
    called = _Called()
    _run(called, [-1, 0, 1], [[0, 1], [1, 1], [0, 1]])
    assert called.caches[-1] == ["start", [[0], [3]], [1, 1], [[1], [4]], [[2], [5]]]


def test_cache_that_cannot_be_reordered_refuses_programs_that_reorder() -> None:
    called = _Called()
    _run(called, [-1, 0, 1], STRAIGHT, reorder=None)
    with pytest.raises(Unsupported, match="does not reorder"):
        _run(called, [-1, 0, 1], [[0, 1], [1, 0], [0, 1]], reorder=None)
