"""The registry of checks, one for each clause."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from attentest.harness.subject import Subject
from attentest.testing.draw import Draw
from attentest_spec.names import require

SUITE = "attentest.suite"
"""The package whose modules register the checks; loaded by name, since it imports this part."""

Body = Callable[[Subject, Draw], None]

_CHECKS: dict[str, "Check"] = {}


@dataclass(frozen=True)
class Check:
    """The test of one clause: a body that is run on several drawn examples.

    `in_use` are examples at sizes as in use, each run once after those.
    """

    clause: str
    body: Body
    examples: int
    module: str
    name: str
    in_use: tuple[Body, ...] = ()


def register(check: Check) -> None:
    """Add `check`; raise ValueError where its clause has one."""
    if check.clause in _CHECKS:
        raise ValueError(f"The clause {check.clause} has two checks.")
    _CHECKS[check.clause] = check


@cache
def checks() -> Mapping[str, Check]:
    """Return every check by its clause; imports the suite."""
    suite = import_module(SUITE)
    for module in walk_packages(suite.__path__, f"{suite.__name__}."):
        import_module(module.name)
    return dict(_CHECKS)


def check_of(clause: str) -> Check:
    """Return the check of `clause`; UnknownName with the nearest ones where there is none."""
    return checks()[require("clause", clause, checks())]
