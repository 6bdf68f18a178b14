"""The causes of what fails: broken verdicts, grouped by the mistake behind them.

A formula that fails breaks most other clauses of its component, and of every component that
contains it. A reader is to see the mistake once, with the clauses that it breaks.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attentest.results.parts import line_of_part, lines_of_parts
from attentest.results.plan import formulas
from attentest.results.verdict import Counterexample, LikelyCause, Location, Status, Verdict
from attentest_spec.clauses import Clause, clauses
from attentest_spec.components import inside

_VARIABLE = re.compile(r"^.*? raised (?=\w+:)|\b(?:\w+\.)+(?=\w)|\d+")
"""Parts in which messages with one reason differ: the step, the place of a name, numbers."""

_SEVERITY = (
    Status.VIOLATION,
    Status.ERROR,
    Status.CRASH,
    Status.TIMEOUT,
    Status.SUITE_BUG,
    Status.WARNING,
)

ANOTHER = "another value"
"""The words for what a line computes where no known mistake computes that."""

Key = tuple[object, ...]
Names = tuple[str, ...]


@dataclass(frozen=True)
class Cause:
    """One mistake, and the verdicts that it breaks, the most telling first.

    `likely` are known mistakes that give the same results, the likeliest first; `location` is the
    line at which the results begin to differ, None where it is not known.
    """

    verdicts: tuple[Verdict, ...]
    likely: tuple[LikelyCause, ...] = ()
    location: Location | None = None

    @property
    def head(self) -> Verdict:
        """The verdict that shows the mistake best."""
        return self.verdicts[0]

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses that fail, the most telling first."""
        return tuple(dict.fromkeys(one.clause for one in self.verdicts))

    @property
    def severity(self) -> Status:
        """The most serious status."""
        return min((one.status for one in self.verdicts), key=_SEVERITY.index)

    @property
    def counterexample(self) -> Counterexample | None:
        """The smallest counterexample of the most telling clause that has one."""
        return next((one.counterexample for one in self.verdicts if one.counterexample), None)

    @property
    def file(self) -> str:
        """The file of the line at which the results begin to differ, "" where it is not known."""
        return self.location.file if self.location else ""

    @property
    def line(self) -> int | None:
        """The number of that line, None where it is not known."""
        return self.location.line if self.location else None

    @property
    def confirmed(self) -> bool:
        """Whether the failing examples pass with the reference's value at that line."""
        return self.location is not None and self.location.confirmed

    @property
    def exact(self) -> bool:
        """Whether the first likely cause gives every result of the failing examples."""
        return bool(self.likely) and is_exact(self.likely[0])

    @property
    def text(self) -> str:
        """The mistake in one sentence: a known one, what its line computes, or what was seen."""
        return sentence(self.likely[0]) if self.exact else self.words or self.head.finding

    def as_dict(self) -> dict[str, Any]:
        """Return what is known of it as plain values; its verdicts are not repeated."""
        return {
            "status": self.severity,
            "text": self.text,
            "clauses": list(self.clauses),
            "file": self.file,
            "line": self.line,
            "confirmed": self.confirmed,
            "known": list(self.likely[0].names) if self.exact else [],
        }

    @property
    def words(self) -> str:
        """The words for what its line computes and what is expected there, "" without a line."""
        if self.location is None:
            return ""
        expected = f"; expected {self.location.expected}" if self.location.expected else ""
        return f"{self.location.computed or ANOTHER}{expected}"


def causes(verdicts: Iterable[Verdict]) -> tuple[Cause, ...]:
    """Return the causes of the broken ones among `verdicts`, the most serious first.

    Together are verdicts with one line of the user's code; with one likely cause; with one reason
    of an error, or of a failure without an output. What has none of these belongs to the formula of
    its component, or of one inside, that fails for a reason as unknown; each of the rest is a group
    of its own, as is what this specification has no clause for.
    """
    broken = [one for one in verdicts if one.status.needs_words]
    known = [one for one in broken if one.clause in clauses()]
    others = [Cause((one,)) for one in broken if one.clause not in clauses()]
    groups: dict[Key, list[Verdict]] = {}
    for key, verdict in zip(_keys(known), known, strict=True):
        groups.setdefault(key, []).append(verdict)
    found = [*map(_cause, groups.values()), *others]
    return tuple(
        sorted(found, key=lambda one: _seriousness(one, explains=_explains_all(one, found)))
    )


def consequences(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return the clauses of one backend that fail because another does, each with that one."""
    return {
        one.clause: cause.head.clause
        for cause in causes(verdicts)
        if cause.head.clause in formulas().values()
        for one in cause.verdicts[1:]
        if clauses()[cause.head.clause].component in inside(_clause(one).component)
    }


def may_follow(cause: Cause, others: Iterable[Cause]) -> bool:
    """Say whether numbers without a cause of their own may be wrong because of another cause.

    They are those of a component that holds one in which a line or a known mistake is found. A
    known mistake is no cause where the formula of the component fails, and not by that.
    """
    others = list(others)
    clause = clauses().get(cause.head.clause)
    is_known = cause.location is not None or (cause.exact and _explains_all(cause, others))
    if clause is None or not cause.head.status.contradicts or is_known:
        return False
    if clause.kind != "values" and not _has_arrays(cause.head):
        return False
    parts = inside(clause.component)
    known = (clauses().get(one.head.clause) for one in others if one.location or one.exact)
    return any(one.kind == "values" and one.component in parts for one in known if one)


def _explains_all(cause: Cause, others: Iterable[Cause]) -> bool:
    """Say whether a known mistake gives the results of the formula of its component, if it fails.

    One that gives those of other examples alone may do so by chance.
    """
    clause = clauses().get(cause.head.clause)
    formula = formulas().get(clause.component, "") if clause and not cause.location else ""
    if not cause.exact or formula in cause.clauses:
        return True
    return not any(
        one.backend == cause.head.backend and one.clause == formula and one.status.contradicts
        for other in others
        for one in other.verdicts
    )


def is_exact(cause: LikelyCause) -> bool:
    """Say whether `cause` gives every result of the failing examples."""
    return cause.kind != "complaint" and not cause.missed


def sentence(cause: LikelyCause) -> str:
    """Return what the mistake does, without its name."""
    return re.sub(r"the fault [\w.-]+: ", "", cause.text)


def shown(verdict: Verdict) -> tuple[LikelyCause, ...]:
    """Return the likely causes of a verdict that may be shown.

    An exception says itself what is wrong. Two wrong results have similar messages, so a similar
    message says something of refusals alone; and what gives some of the results says nothing where
    no outputs were compared.
    """
    if verdict.status is Status.ERROR:
        return ()
    clause, arrays = clauses().get(verdict.clause), _has_arrays(verdict)
    kind = clause.kind if clause else ""  # of an older specification
    refusal, numbers = kind == "errors" and not arrays, arrays or kind == "values"
    return tuple(
        one
        for one in verdict.diagnosis
        if is_exact(one) or (refusal if one.kind == "complaint" else numbers)
    )


# Groups -------------------------------------------------------------------------------------------


def _keys(broken: Sequence[Verdict]) -> Iterator[Key]:
    """Yield for each verdict what it has in common with those of the same cause."""
    names = list(_chosen(broken))
    pairs = list(zip(broken, names, strict=True))
    parts, own_lines = _confirmed_lines(broken), lines_of_parts(broken)
    lines = {
        chosen: line_of_part(verdict, own_lines) or _mended(verdict.location, parts)
        for verdict, chosen in pairs
        if verdict.location and chosen
    }
    proved = _proved_lines(pairs)
    own = [
        _proved(verdict, chosen, proved)
        or line_of_part(verdict, own_lines)
        or _own_key(verdict, chosen, lines, parts)
        for verdict, chosen in pairs
    ]
    unknown = {
        (verdict.backend, verdict.clause): key
        for verdict, key, chosen in zip(broken, own, names, strict=True)
        if not chosen and verdict.status.contradicts
    }
    for verdict, key, chosen in zip(broken, own, names, strict=True):
        yield key if chosen or verdict.location else _of_formula(verdict, unknown) or key


def _proved_lines(pairs: Sequence[tuple[Verdict, Names]]) -> dict[Key, list[Key]]:
    """Return by component and known mistake the lines that are confirmed, there or in a part."""
    places = [one.location for one, _ in pairs if one.location]
    confirmed = {_line(one) for one in places if one.confirmed}
    found: dict[Key, list[Key]] = {}
    for verdict, names in pairs:
        if verdict.location and names and (line := _line(verdict.location)) in confirmed:
            found.setdefault(_mistaken(verdict, names), []).append(line)
    return found


def _proved(verdict: Verdict, names: Names, lines: Mapping[Key, Sequence[Key]]) -> Key | None:
    """Return the first confirmed line of a mistake that is suspected at a line of its own."""
    several = lines.get(_mistaken(verdict, names), ())
    other = verdict.location is not None and _line(verdict.location) not in several
    return several[0] if several and other else None


def _mistaken(verdict: Verdict, names: Names) -> Key:
    """Return the component of a backend with a known mistake in it, which has one line."""
    return verdict.backend, _clause(verdict).component, names


def _confirmed_lines(broken: Sequence[Verdict]) -> dict[str, Key]:
    """Return the confirmed line of each file in which there is one: a model's one mistake is it."""
    places = [one.location for one in broken if one.location]
    found: dict[str, set[Key]] = {}
    for one in places:
        if one.confirmed and one.expected:
            found.setdefault(one.file, set()).add(_line(one))
    return {file: next(iter(lines)) for file, lines in found.items() if len(lines) == 1}


def _mended(location: Location, parts: Mapping[str, Key]) -> Key:
    """Return the line at which a verdict is mended: for a whole model that of its part."""
    line = _line(location)
    return line if location.expected else parts.get(location.file, line)


def _own_key(
    verdict: Verdict, names: Names, lines: Mapping[Names, Key], parts: Mapping[str, Key]
) -> Key:
    if verdict.location:
        return _mended(verdict.location, parts)
    if verdict.status.contradicts and names:
        return lines.get(names, names)
    if verdict.status.contradicts and _has_arrays(verdict):
        return verdict.backend, verdict.clause
    return verdict.backend, verdict.status, _VARIABLE.sub("", verdict.finding)


def _chosen(broken: Sequence[Verdict]) -> Iterator[Names]:
    """Yield for each verdict the names of a likely cause, () where none is likely.

    It gives every result; or it comes first and gives every result of another verdict. Of several
    the one that explains most verdicts is taken.
    """
    exact = [[one.names for one in shown(verdict) if is_exact(one)] for verdict in broken]
    frequency = Counter(names for several in exact for names in several)
    for verdict, several in zip(broken, exact, strict=True):
        nearest = [one.names for one in shown(verdict)[:1] if _has_arrays(verdict)]
        known = [names for names in several or nearest if frequency[names]]
        yield max(known, key=lambda names: frequency[names], default=())


def _of_formula(verdict: Verdict, unknown: Mapping[tuple[str, str], Key]) -> Key | None:
    """Return the key of the innermost formula that fails for an unknown reason, as this does."""
    clause = _clause(verdict)
    if not verdict.status.contradicts or not (clause.kind == "values" or _has_arrays(verdict)):
        return None
    for component in sorted(inside(clause.component), key=_size):
        formula = verdict.backend, formulas().get(component, "")
        if formula in unknown and formula != (verdict.backend, verdict.clause):
            return unknown[formula]
    return None


def _line(location: Location) -> Key:
    return location.file, location.line


def _has_arrays(verdict: Verdict) -> bool:
    return verdict.counterexample is not None and bool(verdict.counterexample.expected)


def _cause(group: Sequence[Verdict]) -> Cause:
    ordered = tuple(sorted(group, key=_telling))
    first = [one for verdict in ordered for one in shown(verdict) if is_exact(one)]
    frequency = Counter(one.names for one in first)
    likely = sorted(first, key=lambda one: -frequency[one.names])[:1]
    if likely and not _explains(likely[0].names, ordered, frequency[likely[0].names]):
        likely = []
    rest = [one for one in shown(ordered[0]) if one.names not in [first.names for first in likely]]
    return Cause(ordered, (*likely, *rest), _location(ordered))


def _explains(names: Names, ordered: Sequence[Verdict], count: int) -> bool:
    """Say whether a likely cause gives the results of the most telling verdict, or of most.

    Of verdicts with one line, a cause that gives the results of few explains what else these show.
    """
    telling = any(one.names == names and is_exact(one) for one in shown(ordered[0]))
    return telling or 2 * count >= len(ordered)


def _location(ordered: Sequence[Verdict]) -> Location | None:
    """Return the line of several verdicts, in the words of the one whose example is shown."""
    lines = [one.location for one in ordered if one.location]
    best = next((one for one in lines if one.confirmed), next(iter(lines), None))
    shown = next((one.location for one in ordered if one.counterexample), None)
    if best is None or shown is None or _line(shown) != _line(best) or shown.step != best.step:
        return best
    return replace(shown, confirmed=best.confirmed)


# Orders -------------------------------------------------------------------------------------------


def _clause(verdict: Verdict) -> Clause:
    return clauses()[verdict.clause]


def _size(component: str) -> int:
    """Return the number of components inside."""
    return len(inside(component))


def _telling(verdict: Verdict) -> tuple[object, ...]:
    """Order what fails: MUST, formulas, inner components, values, then the smallest example."""
    clause = _clause(verdict)
    formula = verdict.clause in formulas().values()
    example = verdict.counterexample
    return (
        verdict.status is Status.WARNING,
        not formula,
        _size(clause.component),
        clause.kind != "values",
        len(example.code) if formula and example else 0,
    )


def _seriousness(cause: Cause, *, explains: bool) -> tuple[object, ...]:
    """Order causes: violations before warnings, known ones first, parts before what holds them.

    Where the known mistake of one `explains` not all that it should, those with a line come first.

    What ended the process, or did not return in time, comes after what was compared.
    """
    clause = clauses().get(cause.head.clause)
    return (
        cause.severity is Status.WARNING,
        cause.severity in (Status.CRASH, Status.TIMEOUT),
        not cause.confirmed,
        not (cause.location or (cause.exact and explains)),
        len(inside(clause.component)) if clause and cause.location else 0,
        -len(cause.verdicts),
    )
