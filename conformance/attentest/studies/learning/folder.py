"""The folder of a training that can be interrupted: its regime, and a checkpoint for each model."""

import fcntl
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attentest.results.output import Occupied, create
from attentest.studies.learning.checkpoint import differences
from attentest.studies.learning.regime import Regime

Place = Callable[[str, int], Path | None]
"""Takes a backend and a seed; returns where the checkpoint of its training is."""


@contextmanager
def checkpoints(folder: Path | None, regime: Regime) -> Iterator[Place]:
    """Yield where checkpoints of `regime` are to be; nowhere for no folder.

    The folder is made where it is missing, and is ours alone as long as it is used. Raises
    :class:`Occupied` for one that is used by another run, or for another regime, with what differs.
    """
    if folder is None:
        yield lambda label, seed: None
        return
    with _held(folder):
        _agreed(folder / "regime.json", regime)
        yield lambda label, seed: folder / f"{_plain(label)}.seed-{seed}.safetensors"


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(folder, os.O_RDONLY)
    except OSError as failure:
        raise Occupied(f"{folder} cannot be used as a folder: {failure.strerror}.") from failure
    try:
        _lock(folder, opened)
        yield
    finally:
        os.close(opened)


def _lock(folder: Path, opened: int) -> None:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as failure:
        raise Occupied(f"{folder} is used by a training that is under way.") from failure
    except OSError as failure:
        raise Occupied(f"{folder} cannot be locked: {failure.strerror}.") from failure


def _agreed(path: Path, regime: Regime) -> None:
    """Write the regime where there is none, and demand that it is the one that is there."""
    if not path.exists():
        create(path, json.dumps(regime.as_dict(), indent=2).encode() + b"\n")
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        stored = None
    if not isinstance(stored, dict):
        raise Occupied(f"{path} is not what this command writes there. Name another folder.")
    if differing := differences(stored, regime.as_dict()):
        raise Occupied(
            f"{path.parent} holds a training under other settings: {differing}. Train under those "
            f"to go on with it, or name another folder."
        )


def _plain(label: str) -> str:
    """Return `label` as a file can be called, unlike that of any other."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", label)[-60:].lstrip(".")
    return plain if plain == label else f"{plain}-{zlib.crc32(label.encode()):08x}"
