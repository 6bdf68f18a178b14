"""The catalogue of faults: realistic mistakes that the suite itself is tested against.

A chapter's faults stand in the module of its name; see :func:`attentest.faults.fault.fault`.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from attentest.faults.fault import Fault, fault, infected, planted, registered
from attentest_spec.components import CHAPTERS
from attentest_spec.names import require


@cache
def faults() -> Mapping[str, Fault]:
    """Return every fault by its slug, chapter by chapter."""
    for chapter in CHAPTERS:
        if find_spec(f"attentest.faults.{chapter}"):
            import_module(f"attentest.faults.{chapter}")
    order = {chapter: number for number, chapter in enumerate(CHAPTERS)}
    found = sorted(registered().values(), key=lambda one: order.get(one.chapter, len(order)))
    return {one.slug: one for one in found}


def fault_of(slug: str) -> Fault:
    """Return the fault `slug`; UnknownName with the nearest ones where there is none."""
    return faults()[require("fault", slug, faults())]


__all__ = ["Fault", "fault", "fault_of", "faults", "infected", "planted"]
