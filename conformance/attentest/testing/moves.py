"""Assertions that a part follows its module to another device."""

from typing import Annotated

import numpy as np

from attentest.harness.subject import Probe
from attentest.testing.assertions import holds
from attentest_spec.contract import Input
from attentest_spec.setting import Floats


def follows_to_device(probe: Probe, x: Annotated[Floats, "*shape D"], *others: Input) -> None:
    """Demand that no array stays behind when a part is moved, and that it computes there.

    It is called with x (.., D) and the `others`. Arrays of up to D numbers are not looked at.
    """
    held = probe.do(
        "listing what it holds on the device meta",
        lambda part: part.moved(device="meta").inventory(),
    )
    arrays = {**held["parameters"], **held["buffers"], **held["loose"]}
    behind = sorted(
        name
        for name, facts in arrays.items()
        if facts["device"] != "meta" and np.prod(facts["shape"], dtype=int) > x.shape[-1]
    )
    holds(not behind, f"Moved to the device meta, it leaves behind: {', '.join(behind)}.")
    place = probe.do(
        "asking where the output lies on the device meta",
        lambda part: part.placed((x, *others), "meta"),
    )
    holds(place == "meta", f"For an input on the device meta the output lies on {place}.")
