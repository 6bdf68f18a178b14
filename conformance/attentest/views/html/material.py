"""What a report is made of: runs and result files, read from wherever they were written."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attentest.results import files, stored_runs
from attentest.results.changes import Changes, changes
from attentest.results.expected_failures import Deviation
from attentest.results.files import Unreadable
from attentest.results.stored_runs import BEGINNING, Run, plainly
from attentest.results.text import line

KINDS = ("comparison", "cost", "learning")
"""The kinds of result files that a report shows."""


@dataclass(frozen=True)
class Material:
    """Everything that one page shows, each kind in the order in which it was given.

    The columns of the matrix are the backends of all `runs`; `changes` tells what became of an
    earlier run; `known` are declared deviations. Every result tells the `name` of its file.
    """

    runs: tuple[Run, ...] = ()
    comparisons: tuple[Mapping[str, Any], ...] = ()
    costs: tuple[Mapping[str, Any], ...] = ()
    learnings: tuple[Mapping[str, Any], ...] = ()
    changes: Changes | None = None
    known: tuple[Deviation, ...] = ()

    def __post_init__(self) -> None:
        """Make every text of the results safe to show, as those of runs are."""
        for kind in ("comparisons", "costs", "learnings"):
            object.__setattr__(self, kind, tuple(plainly(dict(one)) for one in getattr(self, kind)))

    def declaring(self, known: Sequence[Deviation]) -> "Material":
        """Return the same with `known` declared."""
        return replace(self, known=tuple(known))


def read(*paths: Path | str, side_by_side: bool = False) -> Material:
    """Read the streams and result files at `paths`.

    Two streams are an earlier run and a later one, whose verdicts are shown with what changed;
    otherwise, or `side_by_side`, the backends of all streams are columns of one matrix.

    Raises Unreadable for a file that is neither or is not whole, and where a backend comes twice;
    Unrelated for two runs that have no backend in common.
    """
    told: dict[str, list[Any]] = {kind: [] for kind in ("run", *KINDS)}
    for path in map(Path, paths):
        kind, found = _one(path)
        told[kind].append(found)
    streams: list[Run] = told["run"]
    moved = None
    if len(streams) == 2 and not side_by_side:
        moved = changes(*streams)
        streams = streams[1:]
    _distinct(streams)
    comparisons, costs, learnings = (tuple(told[kind]) for kind in KINDS)
    return Material(tuple(streams), comparisons, costs, learnings, moved)


def _one(path: Path) -> tuple[str, Any]:
    """Return the kind and the content of a file."""
    try:
        with path.open("rb") as file:
            start = file.read(len(BEGINNING))
    except OSError as failure:
        raise Unreadable(f"{path} cannot be read: {failure.strerror}.") from failure
    if start == BEGINNING.encode():
        return "run", stored_runs.read(path)
    found = files.read(path, *KINDS)
    return str(found["type"]), {**found, "name": path.name}


def _distinct(streams: Iterable[Run]) -> None:
    """Refuse a backend that comes in two streams: which of its verdicts counts is not known."""
    seen: dict[str, str] = {}
    for run in streams:
        for backend in run.backends:
            if backend in seen:
                raise Unreadable(
                    f"{line(backend)} is in both {seen[backend]} and {run.name}. Leave one of them "
                    f"out, or give these two alone to see what changed."
                )
            seen[backend] = run.name
