"""Checkpoints: named arrays in a safetensors file, with what is known of the model beside them.

A file is read as data, and nothing in it is ever run.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize, safe_open
from safetensors.numpy import save

from attentest.harness.errors import BadCheckpoint
from attentest.results.output import create
from attentest.results.text import line
from attentest_spec.choices import Value
from attentest_spec.precision import PRECISIONS, dtype
from attentest_spec.setting import Array

OURS = "attentest"
"""The key of the file's metadata under which sizes and choices are kept, as JSON."""

_KINDS = {
    "F64": "float64",
    "F32": "float32",
    "BF16": "bfloat16",
    "F16": "float16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
"""The types of the format that arrays of a state can have, by the names of NumPy."""


@dataclass(frozen=True)
class Checkpoint:
    """The entries of a file by the backend's own names, and what the file says of them.

    `sizes` and `choices` are those of the model as far as they are known, `notes` is the rest of
    the file's metadata.
    """

    entries: Mapping[str, Array]
    sizes: Mapping[str, int] = field(default_factory=dict)
    choices: Mapping[str, Value] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def read(path: Path) -> Checkpoint:
    """Read the safetensors file at `path`; raise BadCheckpoint, with the reason, for any other."""
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
        stored = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except (OSError, SafetensorError) as failure:
        raise BadCheckpoint(
            f"{path} cannot be read as a safetensors file: {line(str(failure), 200)}. A checkpoint "
            f"of another kind has to be saved as one first, by safetensors.torch.save_model(..)."
        ) from failure
    entries = {name: _array(path, name, one) for name, one in stored}
    sizes, choices = _known(path, metadata)
    notes = {
        name: text for name, text in metadata.items() if name != OURS and text not in entries
    }  # what names an entry is a second name of it
    return Checkpoint(entries, sizes, choices, notes)


def write(path: Path, checkpoint: Checkpoint) -> None:
    """Write `checkpoint` to `path` as a whole; raise Occupied where something is there.

    An array under several names is stored once, under the first of them in alphabetical order, and
    the others are noted in the metadata, as safetensors.torch.save_model does.
    """
    firsts: dict[int, str] = {}
    for name in sorted(checkpoint.entries):
        firsts.setdefault(id(checkpoint.entries[name]), name)
    kept = {name: firsts[id(array)] for name, array in checkpoint.entries.items()}
    metadata = {
        **checkpoint.notes,
        **{name: first for name, first in kept.items() if name != first},
        OURS: json.dumps({"sizes": dict(checkpoint.sizes), "choices": dict(checkpoint.choices)}),
    }
    stored = {name: np.array(checkpoint.entries[name], order="C") for name in firsts.values()}
    create(path, save(stored, metadata))


def _array(path: Path, name: str, stored: Mapping[str, Any]) -> Array:
    if stored["dtype"] not in _KINDS:
        raise BadCheckpoint(
            f"{path} cannot be converted: its entry {line(name)} is of the type "
            f"{stored['dtype']}, and numbers of a checkpoint are one of {', '.join(PRECISIONS)}."
        )
    kind = _KINDS[stored["dtype"]]
    wanted = dtype(kind) if kind in PRECISIONS else np.dtype(kind)
    return np.frombuffer(stored["data"], dtype=wanted).reshape(stored["shape"])


def _known(path: Path, metadata: Mapping[str, str]) -> tuple[dict[str, int], dict[str, Value]]:
    """Return the sizes and choices that the file states; what is not well formed is refused."""
    try:
        told = json.loads(metadata.get(OURS, "{}"))
        sizes, choices = told.get("sizes", {}), told.get("choices", {})
        well = all(type(one) is int for one in sizes.values()) and all(
            type(one) in (str, int, float) for one in choices.values()
        )
    except (ValueError, AttributeError):
        well = False
    if not well:
        raise BadCheckpoint(
            f"{path} cannot be converted: what its metadata hold under {OURS!r} is not the JSON "
            f"that attentest writes there. Remove that key, and give the sizes by --sizes."
        )
    return sizes, choices
