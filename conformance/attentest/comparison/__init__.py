"""Backends side by side: their choices, their numbers at every step, and what explains them."""

from attentest.comparison.compare import compare
from attentest.comparison.example import EXAMPLES, BadExample, Example, example
from attentest.comparison.result import (
    BOUND,
    EQUAL,
    EXPLAINED,
    NOT_EXPLAINED,
    ChoiceRow,
    Comparison,
    Departure,
    Explanation,
    Failure,
    Flip,
    StepRow,
)

__all__ = [
    "BOUND",
    "EQUAL",
    "EXAMPLES",
    "EXPLAINED",
    "NOT_EXPLAINED",
    "BadExample",
    "ChoiceRow",
    "Comparison",
    "Departure",
    "Example",
    "Explanation",
    "Failure",
    "Flip",
    "StepRow",
    "compare",
    "example",
]
