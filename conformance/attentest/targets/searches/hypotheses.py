"""The hypotheses that a beam search returns, with scores or without."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

from torch import Tensor

Hypothesis = tuple[list[int], float | None]
"""The tokens of a hypothesis, and its score where one is returned."""


def hypotheses_of(result: Any, *, alone: bool) -> list[list[Hypothesis]]:
    """Return the hypotheses of every sequence; ValueError for a result that is none.

    A result is tokens, or tokens with scores, or a list of pairs of both; `alone` says that it is
    that of one sequence, without an axis for the batch.
    """
    found = _plain(result)
    if isinstance(found, tuple) and len(found) == 2 and not _is_pair(found):
        tokens, scores = found
        if alone and not (_depth(tokens) == 3 and len(tokens) == 1):
            tokens, scores = [tokens], [scores]
        found = [_zipped(one, score) for one, score in zip(tokens, scores, strict=True)]
    elif alone and not (isinstance(found, list) and len(found) == 1 and _depth(found) > 2):
        found = [found]
    if not (isinstance(found, Sequence) and found):
        raise ValueError(f"it returned a {type(result).__name__}, and no tokens")
    return [_row(one) for one in found]


def _plain(value: Any) -> Any:
    """Return tensors and arrays as lists, inside of lists and tuples too."""
    if isinstance(value, Tensor) or hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, tuple):
        return tuple(_plain(one) for one in value)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_tokens(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(one, int) for one in value)


def _is_pair(value: Any) -> bool:
    """Say whether a value is tokens and a score, in either order."""
    if not (isinstance(value, Sequence) and len(value) == 2):
        return False
    return any(isinstance(one, float) for one in value) and any(
        _is_tokens(one) and not _is_number(one) for one in value
    )


def _depth(value: Any) -> int:
    return 1 + _depth(value[0]) if isinstance(value, Sequence) and len(value) else 0


def _zipped(tokens: Any, scores: Any) -> list[Any]:
    """Return the pairs of one sequence: one hypothesis, or several."""
    if _is_number(scores):
        return [(tokens, scores)]
    return list(zip(tokens, scores, strict=True))


def _row(found: Any) -> list[Hypothesis]:
    """Return the hypotheses of one sequence."""
    if _is_tokens(found):
        return [([*found], None)]
    if _is_pair(found):
        return [_hypothesis(found)]
    if not (isinstance(found, Sequence) and found):
        raise ValueError(f"it returned a {type(found).__name__}, and no tokens")
    return [_hypothesis(one) for one in found]


def _hypothesis(found: Any) -> Hypothesis:
    if _is_tokens(found):
        return [*found], None
    if _is_pair(found):
        first, second = found
        tokens, score = (second, first) if _is_number(first) else (first, second)
        return [*tokens], float(score)
    raise ValueError("a hypothesis is tokens, or tokens and a score")
