"""Attention whose heads get their share of the width rounded down, without a loss of columns."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

import numpy as np

from attentest.analysis.identify.parts import Part
from attentest.analysis.identify.station import Station
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest_spec import Sizes
from attentest_spec.setting import Floats

COMPONENT = "multi_head_attention"

_OF_WIDTH = {
    "head_width": "d/h",
    "query_key_norm": "none",
    "attention_rotary": "none",
    "relative_bias": "none",
}
"""Options without which the reference cannot be asked about heads of another width."""

_SIZES = (Sizes(d_model=7, heads=2), Sizes(d_model=11, heads=3))
"""Widths that the heads do not divide, with remainders of one and two columns."""


def rounds_heads(subject: Subject) -> bool:
    """Say whether heads that do not divide the width have it rounded down, and all of it is used.

    The projections lead from every column of the input to these heads, and from them to every
    column of the output. Code that leaves out columns has other numbers.
    """
    known = subject.choices.as_dict()
    if any(known[name] != option for name, option in _OF_WIDTH.items()):
        return False
    try:
        return all(_fits(subject, sizes) for sizes in _SIZES)
    except (Absent, BackendError, Violation):
        return False


def _fits(subject: Subject, sizes: Sizes) -> bool:
    """Say whether attention of `sizes` computes what narrower heads do.

    The reference has heads of the whole width, whose last columns are zeros, and scores that are
    larger by the root of the quotient of both widths.
    """
    part = Part(COMPONENT, subject.part(COMPONENT, sizes), subject.choices)
    station = Station.of(part.probe, part.drawn(), part.inputs(length=4))
    wide = copy(station.probe)
    wide.parameters = _widened(station.probe.parameters, sizes)
    return replace(station, probe=wide).fits(subject.choices.but(head_width="d"))


def _widened(parameters: Mapping[str, Floats], sizes: Sizes) -> dict[str, Floats]:
    """Return `parameters` of rounded heads as those of heads that are as wide as the model."""
    narrow, width = sizes.d_model // sizes.heads, sizes.d_model

    def rows(name: str, values: Floats) -> Floats:
        heads = values.reshape(-1, narrow, *values.shape[1:])
        added = [(0, width - narrow) if axis == 1 else (0, 0) for axis in range(heads.ndim)]
        whole: Floats = np.pad(heads, added).reshape(-1, *values.shape[1:])
        return whole * np.sqrt(width / narrow) if name.startswith("query.") else whole

    wide = {
        name: rows(name, values) if name.split(".")[0] in ("query", "key", "value") else values
        for name, values in parameters.items()
    }
    wide["output.weight"] = rows("output.weight", wide["output.weight"].T).T
    return wide
