"""The content of a report: runs and result files, read from the files of other commands."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attentest.results import files, stream
from attentest.results.changes import Changes, changes
from attentest.results.expected_failures import ExpectedFailure
from attentest.results.files import Unreadable
from attentest.results.run import Run
from attentest.results.text import line, plainly

KINDS = ("comparison", "cost", "learning", "sweep", "index")
"""The kinds of result files that a report shows."""


@dataclass(frozen=True)
class Material:
    """Everything that one page shows, each kind in the order in which it was given.

    The columns of the matrix are the backends of all `runs`; `changes` are those since an earlier
    run; `known` are the expected failures. Every result has the `name` of its file.
    """

    runs: tuple[Run, ...] = ()
    comparisons: tuple[Mapping[str, Any], ...] = ()
    costs: tuple[Mapping[str, Any], ...] = ()
    learnings: tuple[Mapping[str, Any], ...] = ()
    sweeps: tuple[Mapping[str, Any], ...] = ()
    indices: tuple[Mapping[str, Any], ...] = ()
    changes: Changes | None = None
    known: tuple[ExpectedFailure, ...] = ()

    def __post_init__(self) -> None:
        """Make every text of the results safe to show, as those of runs are."""
        for kind in ("comparisons", "costs", "learnings", "sweeps", "indices"):
            object.__setattr__(self, kind, tuple(plainly(dict(one)) for one in getattr(self, kind)))

    @property
    def focused(self) -> "Material":
        """The same; runs of inferred adapters without components that none of them provides."""
        return replace(self, runs=tuple(run.focused for run in self.runs))

    def declaring(self, known: Sequence[ExpectedFailure]) -> "Material":
        """Return the same with the expected failures `known`."""
        return replace(self, known=tuple(known))


def read(*paths: Path | str, side_by_side: bool = False) -> Material:
    """Read the streams and result files at `paths`.

    Two streams are an earlier run and a later one, whose verdicts are shown with what changed;
    otherwise, or `side_by_side`, the backends of all streams are columns of one matrix.

    Raises Unreadable for a file that is neither or is not whole, and where a backend comes twice;
    Unrelated for two runs that have no backend in common.
    """
    content: dict[str, list[Any]] = {kind: [] for kind in ("run", *KINDS)}
    for path in map(Path, paths):
        kind, one = _one(path)
        content[kind].append(one)
    streams: list[Run] = content["run"]
    moved = None
    if len(streams) == 2 and not side_by_side:
        moved = changes(*streams)
        streams = streams[1:]
    _distinct(streams)
    comparisons, costs, learnings, sweeps, indices = (tuple(content[kind]) for kind in KINDS)
    return Material(tuple(streams), comparisons, costs, learnings, sweeps, indices, moved)


def _one(path: Path) -> tuple[str, Any]:
    """Return the kind and the content of a file."""
    try:
        with path.open("rb") as file:
            start = file.read(len(stream.BEGINNING))
    except OSError as failure:
        raise Unreadable(f"{path} cannot be read: {failure.strerror}.") from failure
    if start == stream.BEGINNING.encode():
        return "run", stream.read(path)
    result = files.read(path, *KINDS)
    return str(result["type"]), {**result, "name": path.name}


def _distinct(streams: Iterable[Run]) -> None:
    """Refuse a backend that comes in two streams: which of its verdicts counts is not known."""
    seen: dict[str, str] = {}
    for run in streams:
        for target in run.targets:
            if target in seen:
                raise Unreadable(
                    f"{line(target)} is in both {seen[target]} and {run.name}. Leave one of them "
                    f"out, or give these two alone to see what changed."
                )
            seen[target] = run.name
