"""Examples of a check, drawn by Hypothesis and repeatable for one seed."""

import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Step, Subject
from attentest.judging.bench import Bench
from attentest.judging.random_state import seeded_examples
from attentest.judging.registry import Body, Check
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest_spec.clauses import clauses

Example = Callable[[st.DrawFn], None]


class _Ended(BaseException):
    """Ends the examples at the `failure` of one: Hypothesis would run that example again."""

    def __init__(self, failure: Violation | BackendError) -> None:
        super().__init__(str(failure))
        self.failure = failure


@st.composite
def _draw_function(draw: st.DrawFn) -> st.DrawFn:
    """Return the function that draws: `st.data` looks at global random state around each draw."""
    return draw


def try_examples(bench: Bench, check: Check, subject: Subject) -> None:
    """Run the examples until one fails; raise its exception, and keep its trace.

    Those at sizes as in use come last, once each. They are left out where fewer examples than
    usual are asked for, and in half precision, which loses its few digits in sums of this length.
    """
    of_values = clauses()[check.clause].kind == "values"
    excused = _with_own_clause() if of_values else frozenset[str]()

    def run(body: Body, draw: Draw) -> None:
        subject.begin()
        try:
            body(subject, draw)
            subject.end(excused)
        except (Violation, BackendError) as failure:
            subject.failing = subject.failing or subject.trace
            if not bench.shown:
                raise _Ended(failure) from failure
            raise

    def large(body: Body) -> Example:
        def example(draw: st.DrawFn) -> None:
            with suppress(Absent):  # smaller examples were judged
                run(body, Draw(draw, subject, np.random.default_rng(_seed(bench, check))))

        return example

    drawn = _number(bench, check)
    _test(bench, check, drawn, lambda draw: run(check.body, Draw.of(draw, subject)))
    if bench.effort >= 1 and subject.precision not in HALF_PRECISIONS:
        for body in check.in_use:
            _test(bench, check, 1, large(body))


@cache
def _with_own_clause() -> frozenset[str]:
    """Return the components that have a clause about inputs that a call writes into.

    Clauses about their values are judged by these alone.
    """
    return frozenset(
        one.component for slug, one in clauses().items() if slug.endswith("-untouched")
    )


def traces_of(bench: Bench, check: Check, subject: Subject) -> list[list[Step]]:
    """Return the traces of all drawn examples, failing or not."""
    traces = []

    def example(draw: st.DrawFn) -> None:
        subject.begin()
        with suppress(Violation, BackendError, Absent):  # the trace is wanted, whatever the outcome
            check.body(subject, Draw.of(draw, subject))
        traces.append(subject.trace)

    _test(bench, check, _number(bench, check), example)
    return traces


def _number(bench: Bench, check: Check) -> int:
    return max(1, round(check.examples * bench.effort))


def _seed(bench: Bench, check: Check) -> int:
    return zlib.crc32(f"{check.clause}:{bench.seed}".encode())


def _test(bench: Bench, check: Check, number: int, example: Example) -> None:
    """Run `number` examples; the first draws the simplest of all options."""
    wrapped = seed(_seed(bench, check))(_wrapped(number, bench.shrink))
    running = _example.set(example)
    try:
        with _no_constants(), seeded_examples():
            wrapped()
    except _Ended as end:
        raise end.failure from end.failure.__cause__
    finally:
        _example.reset(running)


_example: ContextVar[Example] = ContextVar("_example")
"""The example that is run: Hypothesis needs a third of a millisecond to wrap each by itself."""


@cache
def _wrapped(number: int, shrink: bool) -> Callable[[], None]:
    """Return a function that runs `number` examples."""
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    wrapped: Callable[[], None] = settings(
        max_examples=number,
        phases=phases,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )(given(draw=_draw_function())(lambda draw: _example.get()(draw)))
    vars(wrapped)["_hypothesis_internal_database_key"] = _NO_KEY
    return wrapped


_NO_KEY = b""
"""The key in the database, which is not used: otherwise it is made of the source code each time."""


def _no_constants() -> AbstractContextManager[Any]:
    """Keep Hypothesis from drawing constants that it reads in the source of the loaded modules.

    The examples of a seed would depend on what else is loaded, and on how it is installed. It would
    keep what it read in the working directory, and ask modules for their file that raise there.
    """
    provider = providers.HypothesisProvider
    if not hasattr(provider, _CONSTANT):  # another version of Hypothesis
        return nullcontext()
    return patch.object(provider, _CONSTANT, _no_constant)


_CONSTANT = "_maybe_draw_constant"


def _no_constant(*_: object, **__: object) -> None:
    return None
