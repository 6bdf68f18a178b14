"""Functions that make masks on the CPU alone: a triangle that is made without a device is there."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading
from attentest_spec import Backend, Sizes

B = TypeVar("B", bound=Any)  # a data class with limits, and sentences on what was inferred

SENTENCE = (
    "assumed that it is used on the CPU alone, where it makes its mask: if tokens may be on "
    "another device, this is a mistake, and --strict reports it"
)
_MIXED = "on device cpu"
"""The words of the error of an operation on tensors of two devices, one of them the CPU."""


def is_on_cpu_alone(backend: Backend) -> bool:
    """Say whether the target's mask is made on the CPU whatever the device of the tokens is."""
    if "target_mask" not in backend.components:
        return False
    tokens = np.array([[3, 4, 5, 6], [4, 5, 0, 0]])
    try:
        with undisturbed():
            part = backend.build("target_mask", Sizes())
            return bool(part.placed((tokens, 0), "meta") == "cpu")
    except RuntimeError as failure:
        return _MIXED in str(failure)
    except Exception:  # code that a user wrote may raise anything; a clause will report it
        return False


def with_one_device(backend: B, reading: Reading) -> B:
    """Return the inferred `backend`, limited to the CPU where its masks are made there alone.

    Nothing is assumed where the user is strict.
    """
    if reading.strict or not is_on_cpu_alone(backend):
        return backend
    head, *rest = backend.understood
    return replace(
        backend,
        limits=replace(backend.limits, any_device=False),
        understood=(head, SENTENCE, *rest),
        assumed=(*backend.assumed, SENTENCE),
    )
