"""The catalogue of faults: realistic mistakes that the suite itself is tested against.

A chapter's faults stand in the module or package of its name, those that encoder and decoder
share in `stacks`; see :func:`attentest.faults.fault.fault`.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from attentest.faults.fault import Fault, fault, registered
from attentest.faults.inject import infected, planted
from attentest_spec.components import CHAPTERS
from attentest_spec.names import require


@cache
def faults() -> Mapping[str, Fault]:
    """Return every fault by its slug: by chapter, then by module, then as they are written."""
    for module in walk_packages(__path__, f"{__name__}."):
        import_module(module.name)
    return {one.slug: one for one in sorted(registered().values(), key=_place)}


def fault_of(slug: str) -> Fault:
    """Return the fault `slug`; UnknownName with the nearest ones where there is none."""
    return faults()[require("fault", slug, faults())]


def _place(one: Fault) -> tuple[int, str]:
    """Return what faults are sorted by, so that the order of imports does not show."""
    known = one.chapter in CHAPTERS
    number = CHAPTERS.index(one.chapter) if known else len(CHAPTERS)
    return number, one.override.__module__


__all__ = ["Fault", "fault", "fault_of", "faults", "infected", "planted"]
