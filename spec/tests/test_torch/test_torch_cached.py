"""The adapter of caches: which function is called for which chunk."""

from typing import Any

import numpy as np
import pytest
from torch import Tensor

from attentest_spec.contract import Unsupported
from attentest_spec.sizes import Sizes
from attentest_spec.torch import TorchBackend, cached_decoding, cached_language_model

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


def _run_text(origin: list[list[int]], mask: Any = None, positions: Any = None) -> Any:
    """Return the inputs of every step of a program of two texts in three chunks."""
    steps: list[Any] = []

    def step(built: Any, cache: Any, tokens: Tensor, mask: Any, positions: Any) -> Any:
        given = (tokens, mask, positions)
        steps.append((cache, *(None if one is None else one.tolist() for one in given)))
        return tokens[..., None].double(), f"{cache}+"

    recipe = cached_language_model(
        lambda sizes: None,
        start=lambda built, rows: f"{rows} rows",
        step=step,
        reorder=lambda built, cache, rows: f"{cache}{rows.tolist()}",
        parameters={},
    )
    backend = TorchBackend(name="one", title="one", recipes={"cached_language_model": recipe})
    part = backend.build("cached_language_model", Sizes())
    calls = np.array([1, 1, 1]), np.array([-1, 0, 1]), np.array(origin)
    output = part(TARGET, mask, positions, *calls)
    np.testing.assert_array_equal(output[..., 0], TARGET)
    return steps


def test_step_of_a_text_is_given_the_mask_so_far_and_the_positions_of_new_tokens() -> None:
    mask = np.array([[False, True, True], [True, True, True]])
    positions = np.array([[0, 0, 1], [0, 1, 2]])
    assert _run_text(STRAIGHT, mask, positions) == [
        ("2 rows", [[0], [3]], [[False], [True]], [[0], [0]]),
        ("2 rows+", [[1], [4]], [[False, True], [True, True]], [[0], [1]]),
        ("2 rows++", [[2], [5]], [[False, True, True], [True, True, True]], [[1], [2]]),
    ]


def test_mask_so_far_is_that_of_the_rows_that_are_continued() -> None:
    mask = np.array([[False, True, True], [True, True, True]])
    steps = _run_text([[0, 1], [1, 0], [0, 1]], mask)
    assert steps[1] == ("2 rows+[1, 0]", [[1], [4]], [[True, True], [False, True]], None)
    assert steps[2][2] == [[True, True, True], [False, True, True]]


def test_step_of_a_text_without_padding_is_given_no_mask() -> None:
    assert [step[2:] for step in _run_text(STRAIGHT)] == [(None, None)] * 3
