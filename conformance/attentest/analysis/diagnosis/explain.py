"""The search behind diagnosis and identification: the variants that give the same numbers."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.tolerances import distance
from attentest_spec.setting import Array

SECONDS = 2.0
"""Limit of one search in seconds of this thread's CPU: how busy the machine is changes nothing."""

Variant = Callable[[], Any]
Measure = Callable[[Any, Any], float]


@dataclass(frozen=True)
class Match:
    """A variant that reproduces an output, and the difference that remains."""

    name: str
    difference: float


def explain(
    actual: Any,
    variants: Mapping[str, Variant],
    tolerance: float,
    seconds: float = SECONDS,
    measure: Measure | None = None,
) -> list[Match]:
    """Return the variants that give `actual` to within `tolerance`, the closest first.

    `measure` returns the difference of two outcomes (of arrays, by default). A variant that raises
    explains nothing. Those not reached within `seconds` of CPU are left out.
    """
    difference_of = measure or _difference
    end = time.thread_time() + seconds
    matches = []
    for name, variant in variants.items():
        if time.thread_time() > end:
            break
        try:
            result = variant()
        except (ArithmeticError, ValueError, LookupError, BackendError, Absent, Violation):
            continue
        difference = difference_of(actual, result)
        if difference <= tolerance:
            matches.append(Match(name, difference))
    return sorted(matches, key=lambda match: match.difference)


def _difference(actual: Array, result: Array) -> float:
    return distance(actual, result) if result.shape == actual.shape else inf
