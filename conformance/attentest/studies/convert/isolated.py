"""Converts a checkpoint in a process of its own, the only one in which code of a backend runs.

Numbers cross as safetensors files, and what is reported as plain text.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from attentest.harness.errors import Unavailable
from attentest.harness.messages import Methods
from attentest.harness.process import Isolation
from attentest.studies.convert import converted, read, write
from attentest.studies.participants import Remote, ask, on_target
from attentest_spec import Backend


@dataclass(frozen=True)
class Report:
    """Facts about a conversion, with the names of a Conversion."""

    entries: int
    lost: tuple[str, ...]
    notes: tuple[str, ...]
    effect: str

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Report":
        """Read a report back from plain values."""
        lost, notes = (tuple(map(str, plain[name])) for name in ("lost", "notes"))
        return cls(int(plain["entries"]), lost, notes, str(plain["effect"]))


def convert_file(
    checkpoint: Path,
    source: str,
    target: str,
    isolation: Isolation,
    *,
    sizes: Mapping[str, int],
    approximate: bool,
) -> tuple[bytes, Report]:
    """Return the content of the file that holds `checkpoint` of `source` as one of `target`.

    Both are targets as on the command line. Raises what
    :func:`~attentest.studies.convert.converted` and :func:`~attentest.studies.convert.read` raise,
    LoadFailure, and Unavailable where the process is lost.
    """
    read(checkpoint)  # before anything is loaded for a file that is none
    remote = Remote(__name__, (source, target), isolation)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "converted"
        report = ask(
            remote,
            "convert",
            Report.from_dict,
            checkpoint=str(checkpoint.absolute()),
            out=str(out),
            sizes=dict(sizes),
            approximate=approximate,
        )
        try:
            return out.read_bytes(), report
        except OSError as failure:
            raise Unavailable("its process wrote no checkpoint") from failure


def methods(source: Backend, target: Backend) -> Methods:
    """Return what a process answers that has loaded both backends."""
    return {"convert": partial(_convert, source, target)}


METHODS = on_target(methods)


def _convert(
    source: Backend,
    target: Backend,
    *,
    checkpoint: str,
    out: str,
    sizes: Mapping[str, int],
    approximate: bool,
) -> dict[str, Any]:
    given = read(Path(checkpoint))
    found = converted(given, source, target, sizes=sizes, approximate=approximate)
    write(Path(out), found.checkpoint)
    entries = len(found.checkpoint.entries)
    return asdict(Report(entries, found.lost, found.notes, str(found.effect)))
