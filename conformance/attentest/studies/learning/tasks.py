"""The tasks that models are trained on: small, drawn afresh, and with questions kept back.

A task turns questions, rows of numbers, into source and target tokens. One question in ten is held
out by a checksum of its numbers, whatever their order: no training batch has it in, and validation
has no other.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attentest.harness.errors import AttentestError
from attentest_spec.setting import Array

PAD, BEGIN, END, PLUS, ZERO = range(5)
"""Tokens of all tasks, and those of addition; the digits follow `ZERO`."""

HELD_OUT = 10
"""One question in so many is held out, on average."""

DIGITS = 18
"""Digits of a number to add, at most: the sum of two is still an int64."""

_ROUNDS = 1000

Draw = Callable[[np.random.Generator, int, int], Array]
Write = Callable[[Array, int], tuple[Array, Array]]


class BadTask(AttentestError, ValueError):
    """What was asked of a task cannot be; the text says why and what can."""


@dataclass(frozen=True)
class Task:
    """A task: its questions (B, K), and how they are written as source (B, S) and target (B, T).

    `draw` takes a generator, a count and the task's `length`; every target starts with
    :data:`BEGIN`, and :data:`PAD` fills both sides. `width` gives the longest S and T for a length.
    `length` and `steps` are what is taken where nothing is asked for.
    """

    name: str
    meaning: str
    vocabulary: int
    draw: Draw
    write: Write
    width: Callable[[int], tuple[int, int]]
    length: int
    steps: int

    def batch(
        self, seed: Sequence[int], count: int, length: int, *, held_out: bool = False
    ) -> tuple[Array, Array]:
        """Return `count` questions as source (B, S) and target (B, T), the same for one `seed`.

        Raises :class:`BadTask` where no question of this length is held out, or all are.
        """
        rng = np.random.default_rng(seed)
        found: list[Array] = []
        for _ in range(_ROUNDS):
            drawn = self.draw(rng, count, length)
            found += [question for question in drawn if is_held_out(question) == held_out]
            if len(found) >= count:
                return self.write(np.array(found[:count]), length)
        raise BadTask(
            f"The task {self.name} of length {length} has too few questions to hold some out for "
            f"validation. Give it a larger length."
        )


def is_held_out(question: Array) -> bool:
    """Say whether `question` is kept back for validation; the order of its numbers is no matter."""
    return zlib.crc32(np.sort(question).astype("<i8").tobytes()) % HELD_OUT == 0


def _words(rng: np.random.Generator, count: int, length: int) -> Array:
    """Draw rows that begin with :data:`BEGIN`; the rest is any token but the pad."""
    drawn = rng.integers(1, 11, size=(count, length))
    drawn[:, 0] = BEGIN
    return drawn


def _copied(words: Array, length: int) -> tuple[Array, Array]:
    return words, words.copy()


def _reversed(words: Array, length: int) -> tuple[Array, Array]:
    return words, np.concatenate([words[:, :1], words[:, :0:-1]], axis=1)


def _same_width(length: int) -> tuple[int, int]:
    return length, length


def _summands(rng: np.random.Generator, count: int, length: int) -> Array:
    if length > DIGITS:
        raise BadTask(f"A number to add has at most {DIGITS} digits; {length} are too many.")
    return rng.integers(0, 10**length, size=(count, 2))


def _added(pairs: Array, length: int) -> tuple[Array, Array]:
    source, target = sum_width(length)
    sums = [[*_digits(a), PLUS, *_digits(b)] for a, b in pairs]
    answers = [[BEGIN, *_digits(a + b), END] for a, b in pairs]
    return _padded(sums, source), _padded(answers, target)


def sum_width(length: int) -> tuple[int, int]:
    """Return how long a sum of two numbers of `length` digits can be, and its answer."""
    return 2 * length + 1, length + 3


def _digits(number: int) -> list[int]:
    return [ZERO + int(digit) for digit in str(number)]


def _padded(rows: list[list[int]], width: int) -> Array:
    return np.array([row + [PAD] * (width - len(row)) for row in rows])


TASKS: Mapping[str, Task] = {
    "copy": Task(
        "copy",
        "say the source again",
        11,
        _words,
        _copied,
        _same_width,
        length=10,
        steps=500,
    ),
    "reversal": Task(
        "reversal",
        "say the source backwards, its first token still in front",
        11,
        _words,
        _reversed,
        _same_width,
        length=10,
        steps=500,
    ),
    "addition": Task(
        "addition",
        "say the digits of the sum of two numbers",
        ZERO + 10,
        _summands,
        _added,
        sum_width,
        length=2,
        steps=2000,
    ),
}
"""The tasks by their names."""
