"""The stream: a header, one case per backend and clause, a footer; all else is a view of it.

JSON Lines, one object a line, described by `stream.schema.json` in this package. A stream without
a footer was cut off and is not valid.
"""

import io
import json
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any, TextIO

from attentest.results.plan import Plan
from attentest.results.run import Judged
from attentest.results.verdict import FAILURES, STATUSES, Verdict
from attentest_spec import CHOICES
from attentest_spec.clauses import clauses

FORMAT = 1
"""The version of the schema."""


class Writer:
    """Writes the stream line by line, as verdicts come."""

    def __init__(self, file: TextIO, plan: Plan) -> None:
        self._file = file
        self._put(header(plan))

    def __call__(self, judged: Judged, verdict: Verdict | None) -> None:
        """Write a backend's own line, or that of one verdict."""
        self._put(_backend(judged) if verdict is None else {"type": "case", **verdict.as_dict()})

    def not_installed(self, name: str, command: str) -> None:
        """Write that the backend `name` is left out, and the `command` that installs it."""
        self._put({"type": "not-installed", "backend": name, "install": command})

    def close(self, results: Sequence[Judged], plan: Plan) -> None:
        """Write what was measured, and the footer, without which a stream is not valid."""
        for result in results:
            statements = dict(result.measured)
            self._put({"type": "measured", "backend": result.target, "statements": statements})
        self._put(footer(results, plan))

    def _put(self, event: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(event, ensure_ascii=False) + "\n")
        self._file.flush()


def text(results: Sequence[Judged], plan: Plan, left_out: Mapping[str, str]) -> str:
    """Return the stream of a run that is over, backend by backend."""
    file = io.StringIO()
    writer = Writer(file, plan)
    for name, command in left_out.items():
        writer.not_installed(name, command)
    for result in results:
        writer(result, None)
        for verdict in result.verdicts:
            writer(result, verdict)
    writer.close(results, plan)
    return file.getvalue()


def _backend(judged: Judged) -> dict[str, Any]:
    unknown = {"title": "", "components": [], "choices": {}, "limits": {}}
    return {
        "type": "backend",
        "backend": judged.target,
        "failure": judged.failure,
        **unknown,
        **judged.facts,
    }


def header(plan: Plan) -> dict[str, Any]:
    """Return the first line: environment, plan, and the clauses and choices as they stood."""
    return {
        "type": "header",
        "format": FORMAT,
        "environment": environment(),
        "plan": plan.as_dict(),
        "clauses": [
            {
                "slug": clause.slug,
                "chapter": clause.chapter,
                "component": clause.component,
                "level": clause.level,
                "depth": clause.depth,
                "text": clause.text,
                "reason": clause.reason,
                "source": clause.source,
            }
            for clause in map(clauses().__getitem__, plan.clauses)
        ],
        "choices": [
            {
                "name": choice.name,
                "paper": choice.paper,
                "first": choice.first,
                "clause": choice.clause,
                "why": choice.why,
            }
            for choice in CHOICES.values()
        ],
    }


def footer(results: Sequence[Judged], plan: Plan) -> dict[str, Any]:
    """Return the last line: the verdicts of each status per backend, and the exit code."""
    return {
        "type": "footer",
        "totals": {result.target: totals(result) for result in results},
        "exit": exit_code(results, plan),
    }


def totals(result: Judged) -> dict[str, int]:
    """Return how many verdicts of each status there are, all statuses named."""
    counted = Counter(verdict.status for verdict in result.verdicts)
    return {status: counted[status] for status in STATUSES}


def exit_code(results: Sequence[Judged], plan: Plan) -> int:
    """Return 0 when all conform, 1 when one does not, 3 when one could not be loaded.

    A backend that got fewer verdicts than there are clauses in the plan does not conform.
    """
    if any(result.failure for result in results):
        return 3
    bad = FAILURES | {"suite-bug"}
    return int(
        any(
            len(result.verdicts) != len(plan.clauses)
            or any(verdict.status in bad for verdict in result.verdicts)
            for result in results
        )
    )


def environment() -> dict[str, str]:
    """Return the versions that numbers can depend on."""
    found = {"python": platform.python_version(), "system": platform.platform()}
    for package in ("attentest", "attentest-spec", "numpy", "hypothesis", "torch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def schema() -> dict[str, Any]:
    """Return the JSON Schema of one line."""
    text = files("attentest.results").joinpath("stream.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
