"""The decorator `check`: makes a function the check of a clause, and a pytest test of a backend."""

import warnings
from collections.abc import Callable
from typing import Any
from unittest import SkipTest

from attentest.harness.errors import Violation
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.judging.registry import Body, Check, register
from attentest.results.verdict import Status
from attentest.results.wording import explanation
from attentest_spec import Backend
from attentest_spec.clauses import clauses


class ConformanceWarning(UserWarning):
    """A SHOULD of the spec is not met."""


def check(
    clause: str, *, examples: int = 3, in_use: tuple[Body, ...] = ()
) -> Callable[[Body], Callable[[Any], None]]:
    """Register a body as the check of `clause`, and make it a test with `backend` alone.

    `examples` is the number of inputs that are drawn; a check whose inputs are fixed draws one.
    `in_use` are further examples, at sizes as in use: each is run once.
    The clause's sentence becomes the docstring of the test.
    """

    def decorate(body: Body) -> Callable[[Any], None]:
        register(Check(clause, body, examples, body.__module__, body.__name__, in_use))

        def test(backend: Backend | Bench) -> None:
            __tracebackhide__ = True
            _report(clause, backend)

        test.__name__ = test.__qualname__ = body.__name__
        test.__module__ = body.__module__
        test.__doc__ = clauses()[clause].text
        test.clause = clause  # type: ignore[attr-defined]  # read by the pytest plugin
        return test

    return decorate


def _report(clause: str, backend: Backend | Bench) -> None:
    """Judge, and raise the exceptions that a test runner knows."""
    __tracebackhide__ = True
    verdict = judge(Bench.of(backend), clause)
    if verdict.status is Status.ABSENT:
        raise SkipTest(verdict.message)
    if verdict.status is Status.WARNING:
        warnings.warn(explanation(verdict), ConformanceWarning, stacklevel=3)
    if verdict.status.fails_run:
        raise Violation(explanation(verdict))
