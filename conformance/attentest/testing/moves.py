"""Assertions that a part follows its module to another device."""

import re
from typing import Annotated

import numpy as np

from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Probe
from attentest.testing.assertions import holds
from attentest_spec.contract import Input
from attentest_spec.setting import Floats


def follows_to_device(probe: Probe, x: Annotated[Floats, "*shape D"], *others: Input) -> None:
    """Demand that a part that was moved computes on the other device.

    It is called with x (.., D) and the `others`. What it holds may stay behind if calls move it:
    see :func:`moves_once`. A call that turns autocast off for the device of its input, or that
    converts to the type of another tensor by the name of that type, cannot be made on the device
    meta; that nothing stays behind is all that is demanded of it.
    """
    if not probe.subject.limits.any_device:
        return
    behind = left_behind(probe, x.shape[-1])
    try:
        place = probe.do(
            "asking where the output lies on the device meta",
            lambda part: part.placed((x, *others), "meta"),
        )
    except BackendError as error:
        holds(not behind, _left(behind))
        if _OF_META_ALONE.search(str(error.cause)):
            return
        raise
    holds(place == "meta", f"For an input on the device meta the output lies on {place}.")


_OF_META_ALONE = re.compile(r"unsupported scalarType|autocast|invalid type: 'torch\.meta\.")
"""The words of errors that torch raises on the device meta and on no other device.

Its autocast knows no precision of meta, and `Tensor.type` accepts no name of a type of meta.
"""


def moves_once(probe: Probe, x: Annotated[Floats, "*shape D"]) -> None:
    """Demand that all arrays of more than D numbers are moved with a part, before it is called.

    x (.., D) is an input of the part.
    """
    if not probe.subject.limits.any_device:
        raise Absent(f"{probe.subject.name} stays on the device that it is built for")
    behind = left_behind(probe, x.shape[-1])
    holds(not behind, _left(behind))


def left_behind(probe: Probe, width: int) -> list[str]:
    """Return the names of arrays of more than `width` numbers that stay where they were."""
    held = probe.do(
        "listing what it holds on the device meta",
        lambda part: part.moved(device="meta").inventory(),
    )
    arrays = {**held["parameters"], **held["buffers"], **held["loose"]}
    return sorted(
        name
        for name, facts in arrays.items()
        if facts["device"] != "meta" and np.prod(facts["shape"], dtype=int) > width
    )


def _left(behind: list[str]) -> str:
    return f"Moved to the device meta, it leaves behind: {', '.join(behind)}."
