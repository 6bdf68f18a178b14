"""Files of tensors, the same bytes for the same numbers."""

import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from safetensors.numpy import save

from attentest_spec.setting import Array

Pack = Callable[[Mapping[str, Array]], bytes]


def _safetensors(arrays: Mapping[str, Array]) -> bytes:
    return save({name: np.asarray(one, order="C") for name, one in arrays.items()})


def _npz(arrays: Mapping[str, Array]) -> bytes:
    stored = io.BytesIO()
    named: dict[str, Any] = {name: np.asarray(one, order="C") for name, one in arrays.items()}
    np.savez_compressed(stored, **named)
    return stored.getvalue()


FORMATS: Mapping[str, Pack] = {"safetensors": _safetensors, "npz": _npz}
"""The formats of the files, each with what makes the bytes of one."""
