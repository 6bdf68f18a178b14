"""Programs of texts that are continued from a cache, and the answers of code to them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attentest.targets.language_models.numbers.tracing import NEAR
from attentest_spec import Sizes
from attentest_spec.contract import Input
from attentest_spec.setting import Array, Floats

COMPONENT = "cached_language_model"


@dataclass(frozen=True)
class Trial:
    """The answer of a backend to one program, and that of the reference.

    `failure` is what it raised instead of an answer.
    """

    sizes: Sizes
    inputs: tuple[Input, ...]
    expected: Floats
    actual: Floats | None = None
    failure: str = ""
    refused: bool = False

    def right(self, room: float = NEAR) -> bool:
        """Say whether the answer is that of the reference at real tokens."""
        if self.actual is None or self.actual.shape != self.expected.shape:
            return False
        real = self._real
        apart = np.abs(self.actual - self.expected)[real].max()
        return bool(apart <= room * np.abs(self.expected[real]).max())

    def begins_right(self) -> bool:
        """Say whether the first chunk, which has no cache before it, is that of the reference."""
        first = int(np.asarray(self.inputs[3])[0])
        return (
            self.actual is not None
            and self.actual.shape == self.expected.shape
            and bool(np.allclose(self.actual[:, :first], self.expected[:, :first], 1e-7, 1e-9))
        )

    @property
    def _real(self) -> Array:
        mask = self.inputs[1]
        whole = np.ones(self.expected.shape[:2], dtype=bool)
        return whole if mask is None else np.asarray(mask)


ROWS = 3


def program(
    tokens: Array, chunks: Sequence[int], after: Sequence[int], given: str
) -> tuple[Array, Array | None, Array | None, Array, Array, Array]:
    """Return the inputs of a program of which every chunk continues the last one by default."""
    rows, length = tokens.shape
    columns = np.arange(length)[None, :]
    mask = columns >= np.array([0, 1, 3])[:rows, None] if given == "mask" else None
    if given == "gap":
        mask = (columns < np.array([4, 3, 2])[:rows, None]) | (columns >= chunks[0])
    starts = np.array([2, 0, 1])[:rows, None]
    places = starts + columns if given == "positions" else None
    if given == "first":
        of_chunks = np.concatenate([np.arange(one) for one in chunks])
        places = np.broadcast_to(of_chunks, tokens.shape)
    earlier = np.array(after or range(-1, len(chunks) - 1))
    origin = np.tile(np.arange(rows), (len(chunks), 1))
    return tokens, mask, places, np.array(chunks), earlier, origin


def drawn_tokens(sizes: Sizes, length: int) -> Array:
    """Return tokens (3, `length`), drawn for that length."""
    rng = np.random.default_rng(length)
    return rng.integers(0, sizes.target_vocabulary, size=(ROWS, length))
