"""A task that models are trained on: small, drawn afresh, and with questions kept back.

A task turns questions, rows of numbers, into source and target tokens. A share of the questions is
held out by a checksum of their numbers, whatever their order: no training batch has them in, and
validation has no others.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attentest.harness.errors import AttentestError
from attentest_spec.setting import Array

PAD, BEGIN, END, PLUS, ZERO = range(5)
"""Tokens of all tasks, and those of numbers; the digits follow `ZERO`."""

_ROUNDS = 1000

Draw = Callable[[np.random.Generator, int, int], Array]
Write = Callable[[Array, int], tuple[Array, Array]]


class BadTask(AttentestError, ValueError):
    """A request to a task that cannot be met; the text says why, and what can be asked."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task: its questions (B, K), and how they are written as source (B, S) and target (B, T).

    `draw` takes a generator, a count and the task's `length`; every target starts with
    :data:`BEGIN`, and :data:`PAD` fills both sides. `width` gives the longest S and T for a length,
    `vocabularies` how many tokens source and target have. `length` and `steps` are what is taken
    where nothing is asked for, and `usual` other fields of a regime.

    `held_out` questions of ten are held out. `every` returns all questions of a task that has few:
    then each step is trained on all of them. `ends` says whether targets end with :data:`END`,
    `component` what is trained: a "model", or an "encoder" whose target is one token. `text`
    writes target tokens as words.
    """

    name: str
    meaning: str
    vocabularies: Callable[[int], tuple[int, int]]
    draw: Draw
    write: Write
    width: Callable[[int], tuple[int, int]]
    length: int
    steps: int
    usual: Mapping[str, Any] = field(default_factory=dict)
    held_out: int = 1
    every: Callable[[int], Array] | None = None
    ends: bool = False
    component: str = "model"
    text: Callable[[Array], str] | None = None

    def batch(
        self, seed: Sequence[int], count: int, length: int, *, held_out: bool = False
    ) -> tuple[Array, Array]:
        """Return `count` questions as source (B, S) and target (B, T), the same for one `seed`.

        A task that has few questions returns all that are held out, or all others. Raises
        :class:`BadTask` where no question of this length is held out, or all are.
        """
        if self.every is not None:
            found = self._side(self.every(length), held_out)
            if found:
                return self.write(np.array(found), length)
        else:
            rng = np.random.default_rng(seed)
            found = []
            for _ in range(_ROUNDS):
                found += self._side(self.draw(rng, count, length), held_out)
                if len(found) >= count:
                    return self.write(np.array(found[:count]), length)
        raise BadTask(
            f"The task {self.name} of length {length} has too few questions to hold some out for "
            f"validation. Give it a larger length."
        )

    def _side(self, questions: Array, held_out: bool) -> list[Array]:
        return [one for one in questions if is_held_out(one, self.held_out) == held_out]


def is_held_out(question: Array, tenths: int = 1) -> bool:
    """Say whether `question` is kept back for validation; the order of its numbers is no matter."""
    return zlib.crc32(np.sort(question).astype("<i8").tobytes()) % 10 < tenths


def padded(rows: Sequence[Sequence[int]], width: int) -> Array:
    """Return rows of tokens as (B, `width`), with padding after each."""
    return np.array([[*row, *[PAD] * (width - len(row))] for row in rows])
