"""Records of trainings: one file for each in a folder, found by what the training depends on."""

import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from attentest.results.output import Occupied
from attentest.studies.learning.result import Point
from attentest.studies.sweep.grid import Plan
from attentest.targets import resolve
from attentest.targets.paper import is_paper
from attentest_spec.choices import Value
from attentest_spec.registry import home

MARK = "attentest-sweep"
"""The file that a folder of records has; its text says which format they have."""

FORMAT = "1\n"

SUFFIX = ".jsonl"


@dataclass(frozen=True)
class Record:
    """A training that has ended: its points, or the `reason` why it failed.

    `key` identifies what it depends on, `fault` the mistake that was injected, if any. `levels` are
    those of the factors of the sweep that ran it, and `seconds` and `cpu_seconds` its time by the
    clock and of the processor.
    """

    key: str
    target: str
    task: str
    choices: Mapping[str, Value]
    regime: Mapping[str, Any]
    seed: int
    points: tuple[Point, ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    reason: str = ""
    levels: Mapping[str, Value] = field(default_factory=dict)
    fault: str = ""

    @property
    def end(self) -> Point | None:
        """The last point; None for a training that failed."""
        return self.points[-1] if self.points else None

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**vars(self), "points": [vars(one) for one in self.points]}

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> "Record":
        """Read a record back from plain values."""
        points = tuple(Point(**one) for one in plain["points"])
        return cls(**{**plain, "points": points})


def key_of(plan: Plan) -> str:
    """Return what identifies a training: its plan, the seed and the code, as a checksum.

    Raises :class:`~attentest.studies.learning.task.BadTask` for a regime that cannot be.
    """
    wanted = {
        "target": plan.target,
        "choices": dict(plan.choices),
        "regime": plan.regime.as_dict(),
        "seed": plan.seed,
        "fault": plan.fault,
        "code": code_of(plan.target),
    }
    text = json.dumps(wanted, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def code_of(target: str) -> str:
    """Return a checksum of the code that a training of `target` runs.

    It covers the files of the spec, of the suite and of the folder that defines the backend, and
    the versions of NumPy and torch. Of a program it covers the command alone.
    """
    digest = hashlib.sha256(target.encode())
    for folder in sorted({Path(str(one.__file__)).parent for one in _modules(target)}):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    for library in ("numpy", "torch"):
        with suppress(PackageNotFoundError):
            digest.update(f"{library} {version(library)}".encode())
    return digest.hexdigest()


def _modules(target: str) -> Iterator[ModuleType]:
    yield from map(import_module, ("attentest", "attentest_spec"))
    if is_paper(target) or target.startswith(resolve.PROGRAM):
        return
    yield import_module(home(target)) if resolve.is_name(target) else resolve.module_of(target)


class Folder:
    """A folder of records, which several processes may write to at once.

    A record is one file with one line of JSON, and never written over: the first writer of a
    training wins. Raises Occupied for a folder that holds something else, or cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not (self.path / MARK).exists():
                if any(self.path.iterdir()):
                    raise Occupied(
                        f"{path} holds something else than the records of a sweep. Name another "
                        f"folder, or an empty one."
                    )
                (self.path / MARK).write_text(FORMAT, encoding="utf-8")
            if (self.path / MARK).read_text(encoding="utf-8") != FORMAT:
                raise Occupied(
                    f"{path} holds records that another version wrote. Name another folder."
                )
        except OSError as failure:
            raise Occupied(f"{path} cannot be used as a folder: {failure.strerror}.") from failure

    @classmethod
    def temporary(cls) -> "Folder":
        """Return a folder that is removed when nothing refers to it any more."""
        folder = cls(Path(tempfile.mkdtemp(prefix="attentest-")))
        weakref.finalize(folder, shutil.rmtree, folder.path, ignore_errors=True)
        return folder

    def load(self, key: str) -> Record | None:
        """Return the record of `key`; None where there is none, or no whole one."""
        try:
            plain = json.loads((self.path / f"{key}{SUFFIX}").read_text(encoding="utf-8"))
            return Record.read(plain)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def keep(self, record: Record) -> None:
        """Store `record` unless it is there; a reader sees all of it or nothing."""
        if self.load(record.key) is not None:
            return
        path = self.path / f"{record.key}{SUFFIX}"
        text = json.dumps(record.plain(), ensure_ascii=False) + "\n"
        try:
            with tempfile.NamedTemporaryFile(
                "w", dir=self.path, prefix=".", suffix=".new", delete=False, encoding="utf-8"
            ) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if self.load(record.key) is None:
                os.replace(file.name, path)
            else:
                os.unlink(file.name)
        except OSError as failure:
            raise Occupied(f"{path} cannot be written: {failure.strerror}.") from failure

    def __iter__(self) -> Iterator[Record]:
        """Iterate over all whole records, by their keys."""
        for path in sorted(self.path.glob(f"*{SUFFIX}")):
            if (record := self.load(path.name.removesuffix(SUFFIX))) is not None:
                yield record
