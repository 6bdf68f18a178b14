"""The registry of checks: one per clause, a pytest test and a plain function at once."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any
from unittest import SkipTest

from attentest import suite
from attentest.bench import Bench
from attentest.draw import Draw
from attentest.outcome import FAILURES, Violation
from attentest.subject import Subject
from attentest_spec import Backend
from attentest_spec.names import require

Body = Callable[[Subject, Draw], None]

_CHECKS: dict[str, "Check"] = {}


class ConformanceWarning(UserWarning):
    """A SHOULD of the spec is not met."""


@dataclass(frozen=True)
class Check:
    """What judges one clause: a body that is run on several drawn examples."""

    clause: str
    body: Body
    examples: int
    module: str
    name: str


def check(clause: str, *, examples: int = 10) -> Callable[[Body], Callable[[Any], None]]:
    """Register a body as the check of `clause`, and make it a test with `backend` alone.

    `examples` is how many inputs are drawn; a check whose inputs are fixed draws one.
    """

    def register(body: Body) -> Callable[[Any], None]:
        if clause in _CHECKS:
            raise ValueError(f"The clause {clause} has two checks.")
        _CHECKS[clause] = Check(clause, body, examples, body.__module__, body.__name__)

        def test(backend: Backend | Bench) -> None:
            __tracebackhide__ = True
            _report(clause, backend)

        test.__name__ = test.__qualname__ = body.__name__
        test.__module__ = body.__module__
        test.__doc__ = body.__doc__
        test.clause = clause  # type: ignore[attr-defined]  # read by the pytest plugin
        return test

    return register


def _report(clause: str, backend: Backend | Bench) -> None:
    """Judge, and raise what a test runner understands."""
    __tracebackhide__ = True
    from attentest.explanation import told
    from attentest.judge import judge

    verdict = judge(Bench.of(backend), clause)
    if verdict.status == "absent":
        raise SkipTest(verdict.message)
    if verdict.status == "warning":
        warnings.warn(told(verdict), ConformanceWarning, stacklevel=3)
    if verdict.status in FAILURES or verdict.status == "suite-bug":
        raise Violation(told(verdict))


@cache
def checks() -> Mapping[str, Check]:
    """Return every check by its clause; imports the suite."""
    for module in walk_packages(suite.__path__, f"{suite.__name__}."):
        import_module(module.name)
    return dict(_CHECKS)


def check_of(clause: str) -> Check:
    """Return the check of `clause`; UnknownName with the nearest ones where there is none."""
    return checks()[require("clause", clause, checks())]
