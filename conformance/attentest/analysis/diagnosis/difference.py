"""The difference between two outcomes of one step: numbers, gradients, inventories, exceptions."""

import re
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from attentest.harness.tolerances import distance, largest
from attentest_spec import Gradient, Unsupported

_COMPARED = (np.ndarray, Gradient, tuple, Mapping, Real)


def difference(one: Any, other: Any) -> float:
    """Return the largest difference; infinite where the two differ in kind, shape or type.

    What one of them does not have (an array it does not return, a capability it lacks) and what
    cannot be compared (a part, bytes) makes no difference.
    """
    if _missing(one) or _missing(other):
        return 0.0
    if isinstance(one, BaseException) or isinstance(other, BaseException):
        return 0.0 if type(one) is type(other) and _worded_alike(one, other) else inf
    match one, other:
        case np.ndarray(), np.ndarray():
            comparable = one.shape == other.shape and one.dtype == other.dtype
            return distance(one, other) if comparable else inf
        case Gradient(), Gradient():
            return difference(_parts(one), _parts(other))
        case tuple(), tuple():
            return _worst(zip(one, other, strict=False))
        case Mapping(), Mapping():
            return _of_mappings(one, other)
        case (bool() | str(), _) | (_, bool() | str()):
            return 0.0 if one == other else inf
        case Real(), Real():
            return float(abs(one - other))
    return inf if isinstance(one, _COMPARED) or isinstance(other, _COMPARED) else 0.0


def size(outcome: Any) -> float:
    """Return the largest finite magnitude among the numbers of `outcome`."""
    match outcome:
        case np.ndarray():
            return largest(outcome)
        case Gradient():
            return size(_parts(outcome))
        case tuple():
            return max((size(one) for one in outcome), default=0.0)
        case Mapping():
            return max((size(one) for one in outcome.values()), default=0.0)
    return 0.0


def _worded_alike(one: BaseException, other: BaseException) -> bool:
    """Say whether two errors of operations on tensors are of one kind, by their words.

    Those of any other type are worded by who wrote the code.
    """
    if type(one) is not RuntimeError:
        return True
    first, second = (_NUMBERS.sub("#", str(failure)) for failure in (one, other))
    return SequenceMatcher(None, first, second).ratio() >= _ALIKE


_NUMBERS = re.compile(r"[\[(]?\d+(, \d+)*[\])]?")
_ALIKE = 0.6
"""The similarity from which on two messages, leaving out numbers and shapes, are of one kind."""


def _missing(outcome: Any) -> bool:
    return outcome is None or isinstance(outcome, Unsupported)


def _parts(gradient: Gradient) -> tuple[Any, ...]:
    return gradient.output, gradient.inputs, dict(gradient.parameters)


def _worst(pairs: Iterable[tuple[Any, Any]]) -> float:
    return max((difference(one, other) for one, other in pairs), default=0.0)


def _of_mappings(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> float:
    """Compare by names; where the names differ, as in inventories of two styles, by values."""
    if set(one) == set(other):
        return _worst((one[name], other[name]) for name in one)
    return 0.0 if _listed(one) == _listed(other) else inf


def _listed(held: Mapping[Any, Any]) -> list[str]:
    return sorted(repr(value) for value in held.values())
