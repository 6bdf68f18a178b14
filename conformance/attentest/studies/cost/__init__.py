"""The cost of backends: parameters, operations, time and memory, and their growth."""

from attentest.studies.cost.measure import measure
from attentest.studies.cost.plan import BOTH, FORWARD, BadPlan, Plan
from attentest.studies.cost.result import Cost, Growth, Measurement, Parameters, Spread

__all__ = [
    "BOTH",
    "FORWARD",
    "BadPlan",
    "Cost",
    "Growth",
    "Measurement",
    "Parameters",
    "Plan",
    "Spread",
    "measure",
]
