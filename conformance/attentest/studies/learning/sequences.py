"""The questions and answers of the tasks on tokens without a meaning, and on numbers."""

import numpy as np

from attentest.studies.learning.task import BEGIN, END, PLUS, ZERO, BadTask, padded
from attentest_spec.setting import Array

DIGITS = 18
"""Digits of a number to add, at most: the sum of two is still an int64."""

MODULI = range(3, 98)
"""The moduli of modular addition: each pair of numbers below it is a question."""


def draw_words(rng: np.random.Generator, count: int, length: int) -> Array:
    """Draw rows that begin with :data:`BEGIN`; the rest is any token but the padding."""
    drawn = rng.integers(1, 11, size=(count, length))
    drawn[:, 0] = BEGIN
    return drawn


def write_copies(words: Array, length: int) -> tuple[Array, Array]:
    """Return the words as source and as target."""
    return words, words.copy()


def write_reversals(words: Array, length: int) -> tuple[Array, Array]:
    """Return the words as source, and backwards, behind the first, as target."""
    return words, np.concatenate([words[:, :1], words[:, :0:-1]], axis=1)


def same_width(length: int) -> tuple[int, int]:
    """Return the width of source and target where both are as long as asked for."""
    return length, length


def draw_summands(rng: np.random.Generator, count: int, length: int) -> Array:
    """Draw pairs of numbers of up to `length` digits."""
    if length > DIGITS:
        raise BadTask(f"A number to add has at most {DIGITS} digits; {length} are too many.")
    return rng.integers(0, 10**length, size=(count, 2))


def write_sums(pairs: Array, length: int) -> tuple[Array, Array]:
    """Return the digits of two numbers with a plus between them, and those of their sum."""
    source, target = sum_width(length)
    sums = [[*_digits(a), PLUS, *_digits(b)] for a, b in pairs]
    answers = [[BEGIN, *_digits(a + b), END] for a, b in pairs]
    return padded(sums, source), padded(answers, target)


def sum_width(length: int) -> tuple[int, int]:
    """Return how long a sum of two numbers of `length` digits can be, and its answer."""
    return 2 * length + 1, length + 3


def _digits(number: int) -> list[int]:
    return [ZERO + int(digit) for digit in str(number)]


def every_pair(length: int) -> Array:
    """Return all pairs of numbers below the modulus `length`."""
    if length not in MODULI:
        raise BadTask(
            f"The length of modular addition is its modulus, from {MODULI[0]} to {MODULI[-1]}; "
            f"{length} is not."
        )
    return np.indices((length, length)).reshape(2, -1).T


def draw_pairs(rng: np.random.Generator, count: int, length: int) -> Array:
    """Draw pairs of numbers below the modulus `length`."""
    return rng.choice(every_pair(length), size=count)


def write_remainders(pairs: Array, length: int) -> tuple[Array, Array]:
    """Return two numbers, a token each, with a plus between them, and their sum modulo `length`."""
    first, second = pairs.T
    same = np.ones_like(first)
    source = np.stack([ZERO + first, PLUS * same, ZERO + second], axis=1)
    return source, np.stack([BEGIN * same, ZERO + (first + second) % length], axis=1)
