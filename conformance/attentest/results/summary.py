"""The verdicts on one backend in words: how it was read, what is wrong, what was not judged."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from attentest.results.verdict import FAILURES, Verdict
from attentest.results.wording import told
from attentest_spec.clauses import clauses

_STORIES = FAILURES | {"warning", "suite-bug"}
_GOOD = ("pass", "deviation", "warning")


def reading(understood: Collection[str]) -> str:
    """Return how code that is no backend was read, a line for each sentence."""
    return "\n".join(["understood:", *(f"  {line}" for line in understood)])


def report(name: str, verdicts: Sequence[Verdict]) -> str:
    """Return the stories of what needs words, the deviations, the absent ones, and the count."""
    stories = [told(verdict) for verdict in verdicts if verdict.status in _STORIES]
    groups = ["\n".join(lines) for lines in (_deviations(verdicts), _absent(verdicts)) if lines]
    return "\n\n".join([*stories, *groups, count(name, verdicts)])


def count(name: str, verdicts: Sequence[Verdict]) -> str:
    """Return one sentence with every denominator."""
    judged = [verdict for verdict in verdicts if verdict.status != "absent"]
    good = [verdict for verdict in judged if verdict.status in _GOOD]
    numbers = Counter(verdict.status for verdict in verdicts)
    shown = ", ".join(f"{number} {status}" for status, number in numbers.items()) or "none"
    return (
        f"{name}: {len(good)} of {len(judged)} judged clauses conform, of {len(verdicts)} in all "
        f"({shown})"
    )


def _deviations(verdicts: Sequence[Verdict]) -> list[str]:
    found = [verdict for verdict in verdicts if verdict.status == "deviation"]
    lines = [f"  {clauses()[one.clause].choice}: {one.message}" for one in found]
    return ["another choice than the paper's:", *lines] if lines else []


def _absent(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what was not judged, grouped by the reason."""
    reasons: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.status == "absent":
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
