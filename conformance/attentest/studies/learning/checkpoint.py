"""Checkpoints of a training: weights and moments in one safetensors file, its state beside them.

A file is replaced as a whole or not at all, and only where it is one of the same training.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from attentest.results.output import Occupied
from attentest.studies.learning.result import Point
from attentest_spec.setting import Array

OURS = "attentest.studies.learning"
"""The key of the file's metadata under which the state is kept, as JSON."""


@dataclass
class State:
    """A training after `step` steps: the parameters, Adam's moments, the points, the time spent."""

    parameters: dict[str, Array]
    step: int = 0
    first: dict[str, Array] = field(default_factory=dict)
    second: dict[str, Array] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    _ARRAYS = ("parameters", "first", "second")
    _NUMBERS = ("step", "seconds", "cpu_seconds")


def save_state(path: Path, state: State, marks: Mapping[str, Any]) -> None:
    """Write `state` to `path` with the `marks` of its training; raise Occupied where it cannot be.

    What is there has to be the state of this training, as :func:`load_state` says.
    """
    arrays = {
        f"{kind}/{name}": values
        for kind in State._ARRAYS
        for name, values in getattr(state, kind).items()
    }
    told = {name: getattr(state, name) for name in State._NUMBERS}
    points = [asdict(one) for one in state.points]
    metadata = {OURS: json.dumps({"marks": marks, "points": points, **told})}
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(save(arrays, metadata))
            file.flush()
            os.fsync(file.fileno())  # or a machine that is switched off may keep an empty file
        os.replace(part, path)
    except OSError as failure:
        raise Occupied(f"{path} cannot be written: {failure.strerror}.") from failure


def load_state(path: Path, marks: Mapping[str, Any]) -> State | None:
    """Return the state at `path`, None where nothing is there.

    Raises Occupied, with what differs, for a file that is no state of a training with these
    `marks`.
    """
    if not path.exists():
        return None
    told, arrays = _read(path)
    if differing := differences(told["marks"], marks):
        raise Occupied(
            f"{path} is the checkpoint of another training, and was left as it is: {differing}. "
            f"Name another folder."
        )
    state = State(parameters=arrays["parameters"], first=arrays["first"], second=arrays["second"])
    state.points = [Point(**one) for one in told["points"]]
    for name in State._NUMBERS:
        setattr(state, name, told[name])
    return state


def _read(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Array]]]:
    arrays: dict[str, dict[str, Array]] = {kind: {} for kind in State._ARRAYS}
    try:
        with safe_open(path, framework="np") as file:
            told: dict[str, Any] = json.loads((file.metadata() or {})[OURS])
            for key in file.keys():  # noqa: SIM118  # the file is no mapping
                kind, _, name = key.partition("/")
                arrays[kind][name] = file.get_tensor(key)
    except (OSError, SafetensorError, LookupError, ValueError) as failure:
        raise Occupied(
            f"{path} is no checkpoint of this command, and was left as it is. Name another folder."
        ) from failure
    return told, arrays


def differences(stored: Any, wanted: Any, name: str = "") -> str:
    """Return where two plain values differ, in words; "" where they do not."""
    if isinstance(stored, Mapping) and isinstance(wanted, Mapping):
        told = (
            differences(stored.get(key), wanted.get(key), str(key)) for key in {**wanted, **stored}
        )
        return "; ".join(filter(None, told))
    return "" if stored == wanted else f"{name} is {stored} there and {wanted} here"
