"""Examples of a check, drawn by Hypothesis and repeatable for one seed."""

import zlib
from collections.abc import Callable
from contextlib import suppress

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Step, Subject
from attentest.judging.bench import Bench
from attentest.judging.registry import Check
from attentest.testing.draw import Draw


def try_examples(bench: Bench, check: Check, subject: Subject) -> None:
    """Run the examples until one fails; raise its exception, and keep its trace.

    What only falls short of a SHOULD is raised after all examples have shown nothing worse.
    """

    def example(data: st.DataObject) -> None:
        subject.begin()
        try:
            check.body(subject, Draw.of(data, subject))
        except (Violation, BackendError):
            subject.failing = subject.failing or subject.trace
            raise

    _test(bench, check, example)()
    if subject.falls_short:
        subject.strict = True
        _test(bench, check, example)()


def traces_of(bench: Bench, check: Check, subject: Subject) -> list[list[Step]]:
    """Return the traces of all examples, failing or not."""
    traces = []

    def example(data: st.DataObject) -> None:
        subject.begin()
        with suppress(Violation, BackendError, Absent):  # the trace is wanted, whatever the outcome
            check.body(subject, Draw.of(data, subject))
        traces.append(subject.trace)

    _test(bench, check, example)()
    return traces


def _test(
    bench: Bench, check: Check, example: Callable[[st.DataObject], None]
) -> Callable[[], None]:
    phases = (Phase.generate, Phase.shrink) if bench.shrink else (Phase.generate,)
    wrapped: Callable[[], None] = seed(zlib.crc32(f"{check.clause}:{bench.seed}".encode()))(
        settings(
            max_examples=max(1, round(check.examples * bench.effort)),
            phases=phases,
            database=None,
            deadline=None,
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )(given(data=st.data())(example))
    )
    return wrapped
