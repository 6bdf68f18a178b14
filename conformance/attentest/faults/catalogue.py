"""The faults by their slug, loaded from the modules of their chapters."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from attentest.faults.fault import Fault, registered
from attentest_spec.components import CHAPTERS
from attentest_spec.names import require


@cache
def faults() -> Mapping[str, Fault]:
    """Return every fault by its slug: by chapter, then by module, then as they are written."""
    for chapter in (*CHAPTERS, "stacks"):
        module = import_module(f"attentest.faults.{chapter}")
        for part in iter_modules(getattr(module, "__path__", ()), f"{module.__name__}."):
            import_module(part.name)
    return {one.slug: one for one in sorted(registered().values(), key=_place)}


def fault_of(slug: str) -> Fault:
    """Return the fault `slug`; UnknownName with the nearest ones where there is none."""
    return faults()[require("fault", slug, faults())]


def _place(one: Fault) -> tuple[int, str]:
    """Return the sort key of a fault, so that the order of imports has no effect."""
    known = one.chapter in CHAPTERS
    number = CHAPTERS.index(one.chapter) if known else len(CHAPTERS)
    return number, one.override.__module__
