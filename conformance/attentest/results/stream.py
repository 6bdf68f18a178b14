"""The stream of a run: a header, a case for each backend and clause, the causes, a footer.

JSON Lines, one object a line, described by `stream.schema.json` in this package. A stream without
a footer was cut off and is not valid.
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attentest.results.branches import Branch
from attentest.results.causes import causes
from attentest.results.files import Unreadable
from attentest.results.optional import needed
from attentest.results.output import Writable
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Description, Run
from attentest.results.text import line, plainly
from attentest.results.verdict import Verdict

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

Event = Mapping[str, Any]

FORMAT = 1
"""The version of the schema."""

BEGINNING = '{"type": "header"'
"""The first characters of every stream."""


# Writing ------------------------------------------------------------------------------------------


class Writer:
    """Writes the stream of a run line by line, as verdicts come."""

    def __init__(self, file: Writable, run: Run) -> None:
        """Write the header of `run` and the backends that are not installed."""
        self._file = file
        self._put(_header(run))
        for name, command in run.not_installed.items():
            self._put({"type": "not-installed", "backend": name, "install": command})

    def __call__(self, backend: BackendRun, verdict: Verdict | None) -> None:
        """Write a backend's own line, or that of one verdict."""
        self._put(_backend(backend) if verdict is None else {"type": "case", **verdict.as_dict()})

    def close(self, run: Run) -> None:
        """Write what was measured, the causes, and the footer: none is valid without it."""
        for one in run:
            found: dict[str, Any] = {"statements": dict(one.measured)}
            if one.branches:
                found["branches"] = [branch.as_dict() for branch in one.branches]
            self._put({"type": "measured", "backend": one.target, **found})
        for one in run:
            for cause in causes(one.verdicts):
                self._put({"type": "cause", "backend": one.target, **cause.as_dict()})
        totals = {one.target: one.totals for one in run}
        scores = {one.target: one.scores for one in run}
        footer = {"type": "footer", "totals": totals, "kinds": scores, "exit": run.exit_code}
        self._put(footer)

    def _put(self, event: Event) -> None:
        self._file.write(json.dumps(event, ensure_ascii=False) + "\n")
        self._file.flush()


def text(run: Run) -> str:
    """Return the stream of a run that has ended, backend by backend."""
    file = io.StringIO()
    writer = Writer(file, run)
    for one in run:
        writer(one, None)
        for verdict in one.verdicts:
            writer(one, verdict)
    writer.close(run)
    return file.getvalue()


def _header(run: Run) -> Event:
    return {
        "type": "header",
        "format": FORMAT,
        "environment": dict(run.environment),
        "plan": run.plan.as_dict(),
        "clauses": [dict(one) for one in run.clauses.values()],
        "choices": [dict(one) for one in run.choices.values()],
    }


def _backend(backend: BackendRun) -> Event:
    return {
        "type": "backend",
        "backend": backend.target,
        "failure": backend.failure,
        **backend.description.as_dict(),
    }


# Reading ------------------------------------------------------------------------------------------


def read(path: Path) -> Run:
    """Read the stream at `path`.

    Raises Unreadable, with the line and the reason, for a file that is no complete stream.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as failure:
        raise Unreadable(f"{path} cannot be read: {failure.strerror}.") from failure
    except UnicodeDecodeError as failure:
        raise Unreadable(f"{path} is no text: {failure.reason}.") from failure
    try:
        return parsed(content, line(path.name))
    except ValueError as wrong:
        raise Unreadable(f"{path} is no valid stream: {wrong} Make it again.") from wrong


def parsed(content: str, name: str) -> Run:
    """Return the run in the stream `content`; ValueError describes the first problem in it."""
    rows = content.removesuffix("\n").split("\n")
    events = [_event(number, row) for number, row in enumerate(rows, 1)]
    if not events or events[0]["type"] != "header":
        raise ValueError("it does not begin with a header.")
    if events[-1]["type"] != "footer":
        raise ValueError("it has no footer, so it was cut off.")
    kinds = {kind: list(several) for kind, several in groupby(sorted(events, key=_kind), _kind)}
    if len(kinds["header"]) > 1 or len(kinds["footer"]) > 1:
        raise ValueError("it has two headers or footers; streams are not to be joined.")
    return _run(name, kinds)


def _run(name: str, kinds: Mapping[str, Sequence[Event]]) -> Run:
    (header,), (footer,) = kinds["header"], kinds["footer"]
    described = {one["backend"]: one for one in kinds.get("backend", ())}
    measured = {one["backend"]: one for one in kinds.get("measured", ())}
    if set(described) != set(footer["totals"]):
        raise ValueError("its footer and its lines are not about the same backends.")
    verdicts = [Verdict.from_dict(_without_type(one)) for one in kinds.get("case", ())]
    run = Run(
        Plan.from_dict(header["plan"]),
        tuple(
            BackendRun(
                target,
                Description.from_dict(described[target]),
                [one for one in verdicts if one.backend == target],
                measured.get(target, {}).get("statements", {}),
                described[target]["failure"],
                tuple(map(Branch.from_dict, measured.get(target, {}).get("branches", ()))),
            )
            for target in footer["totals"]
        ),
        {one["backend"]: one["install"] for one in kinds.get("not-installed", ())},
        header["environment"],
        {one["slug"]: one for one in header["clauses"]},
        {one["name"]: one for one in header["choices"]},
        name,
    )
    for problem in _problems(run, verdicts, footer["totals"]):
        raise ValueError(problem)
    return run


def _problems(run: Run, verdicts: Sequence[Verdict], totals: Mapping[str, Any]) -> Iterator[str]:
    """Yield the contradictions in a stream whose lines are valid one by one."""
    undescribed = set(run.plan.clauses) - set(run.clauses)
    if undescribed:
        yield f"its header does not say what {min(undescribed)} is."
    for one in verdicts:
        if one.backend not in totals or one.clause not in run.plan.clauses:
            yield f"it judges {line(one.backend)} by {line(one.clause)}, which was not planned."
    for backend in run:
        if len(backend.by_clause) != len(backend.verdicts):
            yield f"it judges {line(backend.target)} twice by the same clause."
        footer = totals[backend.target].items()
        if any(backend.totals[status] != number for status, number in footer):
            yield f"lines are lost: its footer counts other verdicts on {line(backend.target)}."


def _without_type(event: Event) -> dict[str, Any]:
    return {name: one for name, one in event.items() if name != "type"}


def _kind(event: Event) -> str:
    return str(event["type"])


def _event(number: int, row: str) -> Event:
    """Return one line of a stream, all texts plain; ValueError where it is not valid."""
    try:
        event = json.loads(row)
    except ValueError as failure:
        raise ValueError(f"line {number} is no JSON, so it was cut off or altered.") from failure
    kind = event.get("type") if isinstance(event, dict) else None
    validators = _validators()
    if kind not in validators:
        raise ValueError(f"line {number} is of no known type.")
    if kind == "header" and event.get("format") != FORMAT:
        shown = line(repr(event.get("format")))
        raise ValueError(f"it is of format {shown}, and this version reads {FORMAT}.")
    for wrong in validators[kind].iter_errors(event):
        raise ValueError(f"line {number}: {wrong.json_path}: {line(wrong.message, 200)}.")
    for name in ("budget", "seconds"):  # a page holds them as JSON, which has finite numbers alone
        if isinstance(value := event.get(name), float) and not isfinite(value):
            raise ValueError(f"line {number}: $.{name}: it is not finite.")
    valid: Event = plainly(event)
    return valid


@cache
def _validators() -> dict[str, "Draft202012Validator"]:
    """Return the validator of each type of line."""
    jsonschema = needed("jsonschema")
    definitions = schema()["$defs"]
    return {
        kind: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": definitions})
        for kind in definitions
        if kind != "status"
    }


def schema() -> dict[str, Any]:
    """Return the JSON Schema of one line."""
    content = files("attentest.results").joinpath("stream.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(content)
    return loaded
