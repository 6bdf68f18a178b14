"""A verdict in words, in the order a reader needs them."""

from textwrap import indent

from attentest.outcome import Likeness, Verdict
from attentest_spec.clauses import clauses


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
        lines += [f"  looks like: {_likeness(one)}"]
    lines += [f"  why it matters: {clause.reason}", f"  read on: attentest explain {clause.slug}"]
    return "\n".join(lines)


def _likeness(one: Likeness) -> str:
    if one.kind == "complaint":
        return f"it breaks the clause in the same words as {one.text}"
    return f"it equals {one.text} (to {one.difference:.2g})"
