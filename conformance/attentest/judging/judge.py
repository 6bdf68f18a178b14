"""The judge: a clause and a backend become a verdict."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hypothesis.errors import Flaky

from attentest.analysis.diagnosis import BrokenClause, diagnose
from attentest.harness.errors import Absent, BackendError, Shortcoming, Violation
from attentest.harness.subject import Step, Subject
from attentest.judging.bench import Bench
from attentest.judging.earlier import explanation_of
from attentest.judging.examples import traces_of, try_examples
from attentest.judging.registry import Check, check_of
from attentest.results.text import last_frames, summary
from attentest.results.verdict import LikelyCause, Status, Verdict
from attentest_spec import CHOICES, Backend, Clause, UnknownName
from attentest_spec.choices import Value
from attentest_spec.clauses import clauses
from attentest_spec.profiles import DEFAULT, profile_of


@dataclass(frozen=True)
class _Outcome:
    """The outcome of the examples of a check; `subject` is None where the backend was not asked."""

    status: Status
    message: str = ""
    subject: Subject | None = None
    violation: Violation | None = None
    measured: Value | None = None
    where: str = ""

    @classmethod
    def raised(
        cls, status: Status, message: str, cause: BaseException, subject: Subject | None
    ) -> "_Outcome":
        """Return the outcome of an exception, with the end of its traceback."""
        where = last_frames(cause)
        return cls(status, f"{message} ({where})", subject, where=where)


def judge(
    bench: Bench, slug: str, undiagnosed: Callable[[Verdict], None] = lambda verdict: None
) -> Verdict:
    """Return the verdict of the clause `slug` on the backend of `bench`.

    `undiagnosed` is called with the verdict before its likely causes are searched, which may take
    longer than judging did.

    Never raises for what a backend does; an exception that is no fault of the backend becomes a
    verdict of its own, `suite-bug`. Raises UnknownName for a clause that does not exist.
    """
    check = check_of(slug)
    clause = clauses()[slug]
    start = time.perf_counter()
    outcome = _outcome(bench, clause, check)
    subject = outcome.subject
    broken = outcome.status.broken
    verdict = Verdict(
        backend=bench.name,
        clause=slug,
        status=outcome.status,
        message=outcome.message,
        notes=tuple(subject.notes) if subject else (),
        counterexample=(
            subject.record.counterexample(outcome.violation)
            if subject and broken and bench.shown
            else None
        ),
        budget=subject.budget if subject else None,
        seconds=round(time.perf_counter() - start, 4),
        measured=outcome.measured,
        where=outcome.where,
    )
    worded = isinstance(outcome.violation, Shortcoming)  # the finding says all that there is
    known = outcome.where in bench.searches.exceptions
    if worded or known or not (bench.diagnose and broken and subject):
        return verdict
    undiagnosed(verdict)
    location = None
    if violation := outcome.violation:
        compared = violation.expected is not None
        counted = clause.component if slug.endswith(".parameter-count") else ""
        location = bench.locator.locate(
            subject, subject.failing, compared=compared, counted=counted
        )
    finding = outcome.violation.found if outcome.violation else outcome.message
    in_full = not bench.searches.knows(clause.component, location)
    diagnosis = _diagnosis(bench, clause, check, subject, finding, in_full=in_full)
    verdict = replace(verdict, diagnosis=diagnosis, location=location)
    if outcome.where and not diagnosis:
        bench.searches.exceptions.add(outcome.where)
    else:
        bench.searches.add(clause.component, verdict, searched=in_full)
    if (names := explanation_of(verdict)) and names not in bench.suspects:
        bench.suspects.append(names)
    return verdict


def _outcome(bench: Bench, clause: Clause, check: Check) -> _Outcome:
    """Try the examples of `check` until one fails."""
    subject: Subject | None = None
    try:
        if clause.component not in bench.backend.components and not clause.anywhere:
            return _Outcome(Status.ABSENT, f"{bench.name} provides no {clause.component}")
        subject = _subject(bench, clause)
        try_examples(bench, check, subject)
    except Absent as absence:
        return _Outcome(Status.ABSENT, str(absence), subject)
    except Violation as violation:
        return _Outcome(_broken(clause), violation.found, subject, violation)
    except BackendError as error:
        return _Outcome.raised(Status.ERROR, str(error), error.cause, subject)
    except Flaky as flaky:
        return _flaky(clause, flaky, subject)
    except (UnknownName, ValueError) as wrong:
        if subject is None:  # the declared choices could not be read
            return _Outcome(Status.ERROR, f"its declaration is not well formed: {wrong}")
        return _Outcome.raised(Status.SUITE_BUG, summary(wrong), wrong, subject)
    except Exception as bug:
        return _Outcome.raised(Status.SUITE_BUG, summary(bug), bug, subject)
    return _held(clause, subject)


def _diagnosis(
    bench: Bench, clause: Clause, check: Check, subject: Subject, finding: str, *, in_full: bool
) -> tuple[LikelyCause, ...]:
    """Return the likely causes of a broken clause, which are searched `in_full` or in short."""
    plain = replace(bench, shrink=False, diagnose=False)

    def traces() -> Iterator[list[Step]]:
        yield subject.failing or subject.trace
        yield from traces_of(replace(plain, seed=bench.seed + 1), check, _subject(bench, clause))

    def complain(backend: Backend) -> str:
        return judge(replace(plain, backend=backend), clause.slug).message

    parts = subject, clause.component, clause.slug, traces(), finding, bench.suspects
    case = BrokenClause(*parts, in_full=in_full)
    return diagnose(case, complain)


def _subject(bench: Bench, clause: Clause) -> Subject:
    subject = bench.subject(clause.component, alone=not clause.anywhere)
    subject.needs = clause.needs
    if bench.loader:
        subject.record.loader = bench.loader
    return subject


def _broken(clause: Clause) -> Status:
    return Status.VIOLATION if clause.level == "MUST" else Status.WARNING


def _held(clause: Clause, subject: Subject) -> _Outcome:
    """Return the outcome of a clause that holds: a deviation where another choice was declared."""
    if not clause.choice:
        return _Outcome(Status.PASS, subject=subject)
    choice = CHOICES[clause.choice]
    value = subject.choices[choice.name]
    shown = f"{value:g}" if isinstance(value, float) else value
    if choice.paper is None:
        source = "declared" if choice.name in subject.declared else "measured"
        message = f"the paper is silent; {source}: {shown}"
        return _Outcome(Status.PASS, message, subject, measured=value)
    profile = profile_of(getattr(subject.backend, "profile", DEFAULT))
    if value == profile.option(choice.name):
        return _Outcome(Status.PASS, subject=subject, measured=value)
    whose = "the paper" if profile.name == DEFAULT else f"the profile {profile.name}"
    message = f"declared and measured: {shown}; {whose}: {profile.option(choice.name)}"
    return _Outcome(Status.DEVIATION, message, subject, measured=value)


def _flaky(clause: Clause, flaky: Flaky, subject: Subject | None) -> _Outcome:
    """Judge a backend that failed once and not again on the same input."""
    for one in getattr(flaky, "exceptions", ()):
        if isinstance(one, Violation):
            found = one.found.rstrip(".")
            text = f"{found}. The same input did not always show it: results are not repeatable."
            return _Outcome(_broken(clause), text, subject, one)
        if isinstance(one, BackendError):
            message = f"{one}, but not always on the same input"
            return _Outcome(Status.ERROR, message, subject)
    message = f"the same input gave different results: {summary(flaky)}"
    return _Outcome(Status.ERROR, message, subject)
