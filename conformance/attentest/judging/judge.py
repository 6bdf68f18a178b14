"""The one engine: it asks what a clause says of a backend."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from hypothesis.errors import Flaky

from attentest.analysis.diagnosis import BrokenClause, diagnose
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Step, Subject
from attentest.judging.bench import Bench
from attentest.judging.examples import looked, tried
from attentest.judging.registry import Check, check_of
from attentest.results.text import last_frames, summary
from attentest.results.verdict import Likeness, Verdict
from attentest_spec import CHOICES, Backend, Clause, UnknownName
from attentest_spec.clauses import clauses


def judge(
    bench: Bench, slug: str, found: Callable[[Verdict], None] = lambda verdict: None
) -> Verdict:
    """Return the verdict of the clause `slug` on the backend of `bench`.

    `found` is called with the verdict before the mistake behind it is looked for, which may take
    longer than judging did.

    Never raises for what a backend does; an exception that is no fault of the backend becomes a
    verdict of its own, `suite-bug`. Raises UnknownName for a clause that does not exist.
    """
    check = check_of(slug)
    clause = clauses()[slug]
    start = time.perf_counter()
    status, message, subject, failure = _tried(bench, clause, check)
    told = bench.diagnose and subject is not None and status in _WITNESSED
    verdict = Verdict(
        backend=bench.name,
        clause=slug,
        status=status,
        message=message,
        notes=tuple(subject.notes) if subject else (),
        witness=subject.record.witness(failure) if subject and status in _WITNESSED else None,
        budget=subject.budget if subject else None,
        seconds=round(time.perf_counter() - start, 4),
    )
    if not told or subject is None:
        return verdict
    found(verdict)
    said = failure.found if failure else message
    diagnosis = _diagnosed(bench, clause, check, subject, said)
    explained = (one.names for one in diagnosis[:1] if one.kind != "complaint")
    bench.suspects.extend(names for names in explained if names not in bench.suspects)
    return replace(verdict, diagnosis=diagnosis)


_WITNESSED = ("violation", "warning", "error")


def _tried(
    bench: Bench, clause: Clause, check: Check
) -> tuple[str, str, Subject | None, Violation | None]:
    subject: Subject | None = None
    try:
        if clause.component not in bench.backend.components and not clause.anywhere:
            return "absent", f"{bench.name} provides no {clause.component}", None, None
        subject = _subject(bench, clause)
        tried(bench, check, subject)
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


def _diagnosed(
    bench: Bench, clause: Clause, check: Check, subject: Subject | None, message: str
) -> tuple[Likeness, ...]:
    assert subject is not None
    plain = replace(bench, shrink=False, diagnose=False)

    def traces() -> Iterator[list[Step]]:
        yield subject.failing or subject.trace
        yield from looked(replace(plain, seed=bench.seed + 1), check, _subject(bench, clause))

    def complain(backend: Backend) -> str:
        return judge(replace(plain, backend=backend), clause.slug).message

    case = BrokenClause(subject, clause.component, clause.slug, traces(), message, bench.suspects)
    return diagnose(case, complain)


def _subject(bench: Bench, clause: Clause) -> Subject:
    subject = bench.subject()
    subject.needs = clause.needs
    if bench.loader:
        subject.record.loader = bench.loader
    return subject


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
