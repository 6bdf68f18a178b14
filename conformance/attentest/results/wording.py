"""Verdicts in words: explanations, likely causes, what was not judged, and one line of summary."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import indent

from attentest.results.assumptions import left_out
from attentest.results.causes import shown
from attentest.results.plan import Plan
from attentest.results.run import BackendRun
from attentest.results.text import counted
from attentest.results.verdict import LikelyCause, Status, Verdict
from attentest_spec.clauses import clauses

PAPER = "Vaswani 2017"
"""The heading of the paper's options; `paper` is a target, and so can be the next heading."""

CAUSES = 3
"""The largest number of likely causes that are named for one backend."""


def explanation(verdict: Verdict) -> str:
    """Return a verdict in full: clause, finding, counterexample, reproduction, likely cause."""
    clause = clauses()[verdict.clause]
    lines = [
        f"{verdict.status}: {verdict.clause} ({verdict.backend})",
        f"  demands: {clause.text}",
        f"  found:   {verdict.message}",
    ]
    if example := verdict.counterexample:
        lines += [f"  counterexample: {'; '.join(example.steps)}"]
        if example.actual:
            lines += ["  found values:", indent(example.actual, "    ")]
        if example.expected:
            lines += ["  expected values:", indent(example.expected, "    ")]
        lines += ["  to reproduce:", indent(example.code, "    ")]
    lines += [f"  likely cause: {likely_cause(one)}" for one in shown(verdict)]
    pictures = f"documentation, {clause.chapter}: the commonest mistakes"
    lines += [
        f"  why it matters: {clause.reason}",
        f"  read on: attentest explain {clause.slug} (in pictures: {pictures})",
    ]
    return "\n".join(lines)


def explanations(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Yield the verdicts that need words; errors with one cause are put together."""
    same: dict[tuple[str, str], list[Verdict]] = {}
    for one in verdicts:
        if one.status.needs_words:
            key = one.cause if one.status is Status.ERROR else one.clause
            same.setdefault((one.status, key), []).append(one)
    for first, *others in same.values():
        slugs = ", ".join(one.clause for one in others)
        yield explanation(first) + (f"\n  the same: {slugs}" if others else "")


def likely_cause(cause: LikelyCause) -> str:
    """Return a likely cause of a wrong result, and how well it reproduces it."""
    if cause.kind == "complaint":
        return f"{cause.text} (it breaks the clause with a similar message)"
    missed = f"; {counted(cause.missed, 'result')} not reproduced" if cause.missed else ""
    return f"{cause.text} (it gives the same result to {cause.difference:.2g}{missed})"


def likely_causes(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the likely causes of most failing clauses, a sentence each, the commonest first."""
    first = [shown(verdict)[0] for verdict in verdicts if shown(verdict)]
    frequency = Counter(one.names for one in first)
    texts = {one.names: one.text for one in reversed(first)}
    total = counted(len(first), "failing clause")
    return [
        f"{texts[names]} ({number} of {total} with a likely cause)"
        for names, number in frequency.most_common(CAUSES)
    ]


def inferred(sentences: Iterable[str]) -> str:
    """Return how code that is no backend is called, a line for each sentence."""
    return "\n".join(["inferred:", *(f"  {one}" for one in sentences)])


def report(backend: BackendRun, plan: Plan, how: str = "") -> str:
    """Return all that there is to say of one backend, paragraph by paragraph.

    `how` is said of the judging, at the end of the summary.
    """
    if backend.failure:
        return backend.failure
    sentences = backend.description.inferred
    verdicts = backend.verdicts
    groups = ["\n".join(lines) for lines in (_deviations(verdicts), _absent(verdicts)) if lines]
    return "\n\n".join(
        [
            *([inferred(sentences)] if sentences else []),
            *explanations(verdicts),
            *groups,
            *filter(None, [backend.left_out]),
            "\n".join([summary(backend, plan) + how, *uncompared(backend)]),
        ]
    )


def summary(backend: BackendRun, plan: Plan) -> str:
    """Return one sentence on a backend, with every denominator, in all and by kind of clause."""
    if backend.failure:
        return f"{backend.target}: not loaded"
    conforming, judged = backend.score
    statuses = ", ".join(_by_status(backend)) or "none"
    missing = len(plan.clauses) - len(backend.verdicts)
    lost = f"; {counted(missing, 'clause')} got NO verdict" if missing else ""
    precision = backend.description.precision(plan.precision)
    finest = f" in {precision}" if precision != plan.precision else ""
    part = left_out(backend.description)
    return (
        f"{backend.target}: {conforming} of {judged} judged clauses conform{finest}, "
        f"of {len(plan.clauses)} in all ({statuses}){lost}{_by_kind(backend)}"
        f"{f'; {part}' if part else ''}"
    )


def _by_status(backend: BackendRun) -> Iterator[str]:
    """Yield how many verdicts have each status; errors with one cause are one."""
    for status, count in Counter(verdict.status for verdict in backend.verdicts).items():
        if status is Status.ERROR and backend.errors < count:
            yield f"{counted(backend.errors, 'error')} in {count} clauses"
        else:
            yield f"{count} {status}"


def _by_kind(backend: BackendRun) -> str:
    parts = [f"{kind} {good} of {judged}" for kind, (good, judged) in backend.scores.items()]
    return f"; {', '.join(parts)}" if parts else ""


def uncompared(backend: BackendRun) -> list[str]:
    """Return a line that says that no numbers were compared, none where some were."""
    if not backend.lacks_numbers:
        return []
    return [
        f"{backend.target}: NO NUMBERS WERE COMPARED, so nothing shows that it is correct"
        f"{why_uncompared(backend)}. Say what could not be inferred (attentest check --help), or "
        "write an adapter (attentest new NAME)."
    ]


def why_uncompared(backend: BackendRun) -> str:
    """Return why most clauses on outputs are absent, in brackets, "" where none is."""
    absent = Counter(one.message for one in backend.about_outputs if not one.status.judged)
    return "".join(f" ({reason})" for reason, _ in absent.most_common(1))


def _deviations(verdicts: Sequence[Verdict]) -> list[str]:
    lines = [
        f"  {clauses()[one.clause].choice}: {one.message}"
        for one in verdicts
        if one.status is Status.DEVIATION
    ]
    return ["another choice than the paper's:", *lines] if lines else []


def _absent(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what was not judged, grouped by the reason."""
    reasons: dict[str, list[str]] = {}
    for verdict in verdicts:
        if not verdict.status.judged:
            reasons.setdefault(verdict.message, []).append(verdict.clause)
    lines = [f"  {reason}: {', '.join(_short(slugs))}" for reason, slugs in reasons.items()]
    return ["not judged:", *lines] if lines else []


def _short(slugs: Sequence[str]) -> Iterator[str]:
    """Yield the slugs, the chapter with the first of each."""
    chapter = ""
    for slug in slugs:
        own, _, name = slug.partition(".")
        yield name if own == chapter else slug
        chapter = own
