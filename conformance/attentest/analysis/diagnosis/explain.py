"""The engine behind diagnosis and identification: which variant gives the same numbers."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.tolerances import distance
from attentest_spec.setting import Array

SECONDS = 2.0
"""How long it may take."""

Variant = Callable[[], Any]
Measure = Callable[[Any, Any], float]


@dataclass(frozen=True)
class Match:
    """A variant that reproduces an output, and the difference that is left."""

    name: str
    difference: float


def explain(
    actual: Any,
    variants: Mapping[str, Variant],
    bound: float,
    seconds: float = SECONDS,
    measure: Measure | None = None,
) -> list[Match]:
    """Return the variants that give `actual` to within `bound`, the closest first.

    `measure` tells how far two outcomes are apart (arrays, by default). A variant that raises
    explains nothing. Those not reached within `seconds` are left out.
    """
    apart = measure or _apart
    end = time.perf_counter() + seconds
    found = []
    for name, variant in variants.items():
        if time.perf_counter() > end:
            break
        try:
            result = variant()
        except (ArithmeticError, ValueError, LookupError, BackendError, Absent, Violation):
            continue
        difference = apart(actual, result)
        if difference <= bound:
            found.append(Match(name, difference))
    return sorted(found, key=lambda match: match.difference)


def _apart(actual: Array, result: Array) -> float:
    return distance(actual, result) if result.shape == actual.shape else inf
