"""Whole runs, read back from their streams; what is cut off or no stream is refused."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attentest.results import stream
from attentest.results.files import Unreadable
from attentest.results.optional import needed
from attentest.results.text import line, plain
from attentest.results.verdict import Verdict

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

BEGINNING = '{"type": "header"'
"""What a stream begins with."""


@dataclass(frozen=True)
class Run:
    """A run as its stream tells it; `name` is that of the file.

    `backends` holds what each says of itself, in the order of the columns, `cases` the verdicts by
    backend and clause, `measured` what is told of each and not judged, `left_out` the backends that
    were not installed, with the commands that install them.
    """

    name: str
    header: Mapping[str, Any]
    backends: Mapping[str, Mapping[str, Any]]
    cases: Mapping[str, Mapping[str, Verdict]]
    measured: Mapping[str, Mapping[str, str]]
    left_out: Mapping[str, str]

    @property
    def plan(self) -> tuple[str, ...]:
        """The clauses that were to be judged."""
        return tuple(self.header["plan"]["clauses"])

    @property
    def settings(self) -> dict[str, str]:
        """What verdicts can depend on beside the backend: the plan's settings, then versions."""
        told = {name: one for name, one in self.header["plan"].items() if name in _SETTINGS}
        return {**{name: str(one) for name, one in told.items()}, **self.header["environment"]}


_SETTINGS = ("precision", "device", "seed", "effort", "shrink", "limit", "memory")


def read(path: Path) -> Run:
    """Read the stream at `path`.

    Raises Unreadable, with the line and the reason, for what is no whole stream.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as failure:
        raise Unreadable(f"{path} cannot be read: {failure.strerror}.") from failure
    except UnicodeDecodeError as failure:
        raise Unreadable(f"{path} is no text: {failure.reason}.") from failure
    try:
        return parsed(text, line(path.name))
    except ValueError as wrong:
        raise Unreadable(f"{path} is no valid stream: {wrong} Make it again.") from wrong


def parsed(text: str, name: str) -> Run:
    """Return the run that the stream `text` tells; ValueError says what is wrong with it."""
    rows = text.removesuffix("\n").split("\n")
    events = [_event(number, row) for number, row in enumerate(rows, 1)]
    if not events or events[0]["type"] != "header":
        raise ValueError("it does not begin with a header.")
    if events[-1]["type"] != "footer":
        raise ValueError("it has no footer, so it was cut off.")
    kinds = {kind: list(found) for kind, found in groupby(sorted(events, key=_kind), _kind)}
    if len(kinds["header"]) > 1 or len(kinds["footer"]) > 1:
        raise ValueError("it has two headers or footers; streams are not to be joined.")
    return _run(name, kinds, events[-1]["totals"])


def _run(
    name: str, kinds: Mapping[str, Sequence[dict[str, Any]]], totals: Mapping[str, Any]
) -> Run:
    (header,) = kinds["header"]
    told = _by_backend(kinds.get("backend", ()))
    measured = _by_backend(kinds.get("measured", ()))
    if set(told) != set(totals):
        raise ValueError("its footer and its lines are not about the same backends.")
    verdicts = [Verdict.from_dict(_untyped(one)) for one in kinds.get("case", ())]
    run = Run(
        name,
        header,
        {one: told[one] for one in totals},
        {one: {v.clause: v for v in verdicts if v.backend == one} for one in totals},
        {one: found["statements"] for one, found in measured.items() if one in told},
        {one["backend"]: one["install"] for one in kinds.get("not-installed", ())},
    )
    for problem in _problems(run, verdicts, totals):
        raise ValueError(problem)
    return run


def _problems(run: Run, verdicts: Sequence[Verdict], totals: Mapping[str, Any]) -> Iterator[str]:
    """Yield what does not fit together in a stream whose lines are sound."""
    undescribed = set(run.plan) - {one["slug"] for one in run.header["clauses"]}
    if undescribed:
        yield f"its header does not say what {min(undescribed)} is."
    for one in verdicts:
        if one.backend not in run.backends or one.clause not in run.plan:
            yield f"it judges {line(one.backend)} by {line(one.clause)}, which was not planned."
    for name, counted in totals.items():
        found = [one.status for one in verdicts if one.backend == name]
        if len(found) != len(run.cases[name]):
            yield f"it judges {line(name)} twice by the same clause."
        if any(found.count(status) != number for status, number in counted.items()):
            yield f"lines are lost: its footer counts other verdicts on {line(name)}."


def _by_backend(events: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {one["backend"]: _untyped(one) for one in events}


def _untyped(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in event.items() if name != "type"}


def _kind(event: Mapping[str, Any]) -> str:
    return str(event["type"])


def _event(number: int, row: str) -> dict[str, Any]:
    """Return one line of a stream, all texts plain; ValueError where it is none."""
    try:
        event = json.loads(row)
    except ValueError as failure:
        raise ValueError(f"line {number} is no JSON, so it was cut off or altered.") from failure
    kind = event.get("type") if isinstance(event, dict) else None
    validators = _validators()
    if kind not in validators:
        raise ValueError(f"line {number} is of no known type.")
    if kind == "header" and event.get("format") != stream.FORMAT:
        found = line(repr(event.get("format")))
        raise ValueError(f"it is of format {found}, and this version reads {stream.FORMAT}.")
    for wrong in validators[kind].iter_errors(event):
        raise ValueError(f"line {number}: {wrong.json_path}: {line(wrong.message, 200)}.")
    for name in ("budget", "seconds"):  # a page holds them as JSON, which has finite numbers alone
        if isinstance(value := event.get(name), float) and not isfinite(value):
            raise ValueError(f"line {number}: $.{name}: it is not finite.")
    found = plainly(event)
    assert isinstance(found, dict)  # as the schema says
    return found


@cache
def _validators() -> dict[str, "Draft202012Validator"]:
    """Return what tells whether a line of a type is sound."""
    jsonschema = needed("jsonschema")
    definitions = stream.schema()["$defs"]
    return {
        kind: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": definitions})
        for kind in definitions
        if kind != "status"
    }


def plainly(value: Any) -> Any:
    """Return `value`, as JSON holds it, with every text in it safe to show."""
    match value:
        case str():
            return plain(value)
        case dict():
            return {plain(name): plainly(one) for name, one in value.items()}
        case list() | tuple():
            return [plainly(one) for one in value]
        case _:
            return value
