"""The one engine: it asks what a clause says of a backend."""

import time
import zlib
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from attentest.bench import Bench
from attentest.checks import Check, check_of
from attentest.diagnosis import diagnose
from attentest.draw import Draw
from attentest.outcome import Absent, BackendError, Verdict, Violation, last_frames, summary
from attentest.subject import Subject
from attentest_spec import CHOICES, Clause, UnknownName
from attentest_spec.clauses import clauses


def judge(bench: Bench, slug: str) -> Verdict:
    """Return the verdict of the clause `slug` on the backend of `bench`.

    Never raises for what a backend does; an exception that is no fault of the backend becomes a
    verdict of its own, `suite-bug`. Raises UnknownName for a clause that does not exist.
    """
    check = check_of(slug)
    clause = clauses()[slug]
    start = time.perf_counter()
    status, message, subject, failure = _tried(bench, clause, check)
    return Verdict(
        backend=str(bench.backend.name),
        clause=slug,
        status=status,
        message=message,
        notes=tuple(subject.notes) if subject else (),
        witness=subject.record.witness(failure) if subject and status in _WITNESSED else None,
        diagnosis=diagnose(subject) if subject and failure and bench.diagnose else (),
        budget=subject.budget if subject else None,
        seconds=round(time.perf_counter() - start, 4),
    )


_WITNESSED = ("violation", "warning", "error")


def _tried(
    bench: Bench, clause: Clause, check: Check
) -> tuple[str, str, Subject | None, Violation | None]:
    subject: Subject | None = None
    try:
        if clause.component not in bench.backend.components:
            return "absent", f"{bench.backend.name} provides no {clause.component}", None, None
        subject = Subject(
            bench.backend, choices=bench.choices, precision=bench.precision, device=bench.device
        )
        subject.needs = clause.needs
        if bench.loader:
            subject.record.loader = bench.loader
        _examples(bench, check, subject)()
    except Absent as absence:
        return "absent", str(absence), subject, None
    except Violation as violation:
        return _broken(clause), violation.found, subject, violation
    except BackendError as error:
        return "error", f"{error} ({last_frames(error.cause)})", subject, None
    except Flaky as flaky:
        return _flaky(clause, flaky, subject)
    except (UnknownName, ValueError) as wrong:
        if subject is None:  # the declared choices could not be read
            return "error", f"its declaration is not well formed: {wrong}", None, None
        return "suite-bug", f"{summary(wrong)} ({last_frames(wrong)})", subject, None
    except Exception as bug:
        return "suite-bug", f"{summary(bug)} ({last_frames(bug)})", subject, None
    return *_kept(clause, subject), subject, None


def _examples(bench: Bench, check: Check, subject: Subject) -> Callable[[], None]:
    """Return the check as Hypothesis runs it, repeatable for one seed."""

    def example(data: st.DataObject) -> None:
        subject.begin()
        check.body(subject, Draw.of(data, subject))

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


def _broken(clause: Clause) -> str:
    return "violation" if clause.level == "MUST" else "warning"


def _kept(clause: Clause, subject: Subject) -> tuple[str, str]:
    """Return the status of a clause that held: a deviation where another choice was declared."""
    if not clause.choice:
        return "pass", ""
    choice = CHOICES[clause.choice]
    value = subject.choices[choice.name]
    shown = f"{value:g}" if isinstance(value, float) else value
    if choice.paper is None:
        source = "declared" if choice.name in subject.declared else "measured"
        return "pass", f"the paper is silent; {source}: {shown}"
    if value == choice.paper:
        return "pass", ""
    return "deviation", f"declared and measured: {shown}; the paper: {choice.paper}"


def _flaky(
    clause: Clause, flaky: Flaky, subject: Subject | None
) -> tuple[str, str, Subject | None, Violation | None]:
    """Judge a backend that failed once and not again on the same input."""
    for one in getattr(flaky, "exceptions", ()):
        if isinstance(one, Violation):
            text = f"{one.found} The same input did not always show it: results are not repeatable."
            return _broken(clause), text, subject, one
        if isinstance(one, BackendError):
            return "error", f"{one}, but not always on the same input", subject, None
    return "error", f"the same input gave unlike results: {summary(flaky)}", subject, None
