"""Backends side by side: their choices, their numbers at every step, and what explains them."""

from attentest.harness.errors import Unavailable
from attentest.studies.comparison.compare import compare
from attentest.studies.comparison.example import EXAMPLES, BadExample, Example, example
from attentest.studies.comparison.parts import (
    BOUND,
    EQUAL,
    EXPLAINED,
    NOT_EXPLAINED,
    ChoiceRow,
    Departure,
    Explanation,
    Flip,
    StepRow,
)
from attentest.studies.comparison.pictures import Picture
from attentest.studies.comparison.result import Comparison
from attentest.studies.comparison.tracing import Trace, TraceRow, follow
from attentest.studies.participants import Failure

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
    "StepRow",
    "Trace",
    "TraceRow",
    "Unavailable",
    "compare",
    "example",
    "follow",
]
