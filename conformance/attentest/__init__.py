"""Tests whether a Transformer implementation is right, and names the likely cause of mistakes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attentest.version import __version__

if TYPE_CHECKING:
    from attentest.interfaces.python import Report, adapted, check
    from attentest.studies.comparison.compare import compare
    from attentest.studies.comparison.tracing import follow as trace
    from attentest.studies.cost.measure import measure as cost
    from attentest.studies.identification import identify_target as identify
    from attentest.studies.index.index import index
    from attentest.studies.learning.learn import learn
    from attentest.studies.sweep.sweep import sweep

_HOMES = {
    "Report": "interfaces.python:Report",
    "adapted": "interfaces.python:adapted",
    "check": "interfaces.python:check",
    "compare": "studies.comparison.compare:compare",
    "cost": "studies.cost.measure:measure",
    "identify": "studies.identification:identify_target",
    "index": "studies.index.index:index",
    "learn": "studies.learning.learn:learn",
    "sweep": "studies.sweep.sweep:sweep",
    "trace": "studies.comparison.tracing:follow",
}
"""The module and the name of each function of the Python API."""

__all__ = [
    "Report",
    "__version__",
    "adapted",
    "check",
    "compare",
    "cost",
    "identify",
    "index",
    "learn",
    "sweep",
    "trace",
]


def __getattr__(name: str) -> Any:
    """Load the Python API at its first use: pytest imports this package in every project."""
    if name in _HOMES:
        home, _, own = _HOMES[name].partition(":")
        return getattr(import_module(f"attentest.{home}"), own)
    raise AttributeError(f"module 'attentest' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the Python API, so that an interactive session completes its names."""
    return sorted({*globals(), *__all__})
