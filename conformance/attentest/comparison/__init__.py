"""Backends side by side: their choices, their numbers at every step, and what explains them."""

from attentest.comparison.compare import compare
from attentest.comparison.example import EXAMPLES, BadExample, Example, example
from attentest.comparison.participant import Refused
from attentest.comparison.parts import (
    BOUND,
    EQUAL,
    EXPLAINED,
    NOT_EXPLAINED,
    ChoiceRow,
    Departure,
    Explanation,
    Failure,
    Flip,
    StepRow,
)
from attentest.comparison.pictures import Picture
from attentest.comparison.result import Comparison
from attentest.comparison.tracing import Trace, TraceRow, follow

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
    "Picture",
    "Refused",
    "StepRow",
    "Trace",
    "TraceRow",
    "compare",
    "example",
    "follow",
]
