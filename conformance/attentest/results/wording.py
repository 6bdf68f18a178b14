"""A verdict in words, in the order a reader needs them."""

from collections import Counter
from collections.abc import Iterable
from textwrap import indent

from attentest.results.verdict import Likeness, Verdict
from attentest_spec.clauses import clauses

MISTAKES = 3
"""How many likely mistakes are told of one backend."""


def told(verdict: Verdict) -> str:
    """Return the story of a verdict: demand, finding, witness, reproduction, where to read."""
    clause = clauses()[verdict.clause]
    lines = [
        f"{verdict.status}: {verdict.clause} ({verdict.backend})",
        f"  demands: {clause.text}",
        f"  found:   {verdict.message}",
    ]
    if verdict.witness:
        lines += [f"  witness: {'; '.join(verdict.witness.steps)}"]
        if verdict.witness.actual:
            lines += ["  found values:", indent(verdict.witness.actual, "    ")]
        if verdict.witness.expected:
            lines += ["  expected values:", indent(verdict.witness.expected, "    ")]
        lines += ["  to reproduce:", indent(verdict.witness.code, "    ")]
    for one in verdict.diagnosis:
        lines += [f"  looks like: {likeness(one)}"]
    pictures = f"documentation, {clause.chapter}: the commonest mistakes"
    lines += [
        f"  why it matters: {clause.reason}",
        f"  read on: attentest explain {clause.slug} (in pictures: {pictures})",
    ]
    return "\n".join(lines)


def likeness(one: Likeness) -> str:
    """Return what a wrong answer looks like, in words."""
    if one.kind == "complaint":
        return f"it breaks the clause in the same words as {one.text}"
    missed = f"; {one.missed} answers differ" if one.missed else ""
    return f"it equals {one.text} (to {one.difference:.2g}{missed})"


def mistakes(verdicts: Iterable[Verdict]) -> list[str]:
    """Return what most failing clauses look like, a sentence each, the commonest first."""
    told = [verdict.diagnosis[0] for verdict in verdicts if verdict.diagnosis]
    counted = Counter(one.names for one in told)
    words = {one.names: one.text for one in reversed(told)}
    return [
        f"{words[names]} ({number} of {len(told)} failing clauses that look like something)"
        for names, number in counted.most_common(MISTAKES)
    ]
