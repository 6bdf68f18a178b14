"""Positions in single precision that are added to a half one, whose sum is in single precision."""

from dataclasses import replace
from typing import Any

import numpy as np

from attentest.targets.adapt.assumptions.devices import B, limited
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest_spec import Backend
from attentest_spec.precision import dtype

SENTENCE = (
    "assumed that it is not called in half precision: given {}, it returns float32. If a model in "
    "half precision is to call it, this is a mistake, and --strict reports it"
)
_COMPONENT = "positional_encoding"


def with_own_precisions(backend: B) -> B:
    """Return the inferred `backend` without the half precisions that its positions promote."""
    if _COMPONENT not in backend.components:
        return backend
    halves = [one for one in backend.limits.precisions if one not in ("float64", "float32")]
    promoted = [one for one in halves if _promotes(backend, one)]
    if not promoted:
        return backend
    kept = tuple(one for one in backend.limits.precisions if one not in promoted)
    limits = replace(backend.limits, precisions=kept)
    return limited(backend, limits, SENTENCE.format(" or ".join(promoted)))


def _promotes(backend: Backend, precision: str) -> bool:
    """Say whether what it returns for an input in half `precision` is in single precision."""
    x: Any = np.zeros((2, 4, SIZES.d_model)).astype(dtype(precision))
    try:
        with undisturbed():
            output = backend.build(_COMPONENT, SIZES, precision=precision)(x)
    except Exception:  # code that a user wrote may raise anything; a clause will report it
        return False
    return bool(output.dtype == np.float32)
