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

_OF_WIDTH = {
    "head_width": "d/h",
    "query_key_norm": "none",
    "attention_rotary": "none",
    "relative_bias": "none",
}
"""Options without which the reference cannot be asked about heads of another width."""

_SIZES = (Sizes(d_model=7, heads=2), Sizes(d_model=11, heads=3))
"""Widths that the heads do not divide, with remainders of one and two columns."""

_EVEN_SIZES = (Sizes(d_model=10, heads=3), Sizes(d_model=14, heads=4))
"""The same for what refuses odd widths."""

_SHARED = ("query", "key", "value")


def rounds_heads(
    subject: Subject, component: str = "multi_head_attention", *, explained: bool = True
) -> bool:
    """Say whether heads that do not divide the width have it rounded down, and all of it is used.

    The projections of every attention in `component` lead from every column of the input to these
    heads, and from them to every column of the output. Code that leaves out columns has other
    numbers. Where the choices do not have it `explained` at other widths, the shapes of its
    parameters have to say it.
    """
    known = subject.choices.as_dict()
    if any(known[name] != option for name, option in _OF_WIDTH.items()):
        return False
    sizes = _SIZES if subject.limits.odd_width else _EVEN_SIZES
    try:
        return all(_fits(subject, component, one, explained=explained) for one in sizes)
    except (Absent, BackendError, Violation):
        return False


def _fits(subject: Subject, component: str, sizes: Sizes, *, explained: bool) -> bool:
    """Say whether `component` at `sizes` computes what narrower heads do.

    The reference has heads of the whole width, whose last columns are zeros, and scores that are
    larger by the root of the quotient of both widths.
    """
    fitted = subject.limits.fitted(sizes)
    part = Part(component, subject.part(component, fitted), subject.choices)
    station = Station.of(part.probe, part.drawn(), part.inputs(length=4))
    wide = copy(station.probe)
    wide.parameters = _widened(station.probe.parameters, fitted)
    of_whole_width = subject.choices.but(head_width="d")
    return not explained or replace(station, probe=wide).fits(of_whole_width)


def _widened(parameters: Mapping[str, Floats], sizes: Sizes) -> dict[str, Floats]:
    """Return `parameters` of rounded heads as those of heads that are as wide as the model."""
    narrow, width = sizes.d_model // sizes.heads, sizes.d_model

    def rows(name: str, values: Floats) -> Floats:
        heads = values.reshape(-1, narrow, *values.shape[1:])
        added = [(0, width - narrow) if axis == 1 else (0, 0) for axis in range(heads.ndim)]
        whole: Floats = np.pad(heads, added).reshape(-1, *values.shape[1:])
        return whole * np.sqrt(width / narrow) if name == "query" else whole

    wide = dict(parameters)
    for name, values in parameters.items():
        *path, linear, leaf = name.split(".")
        if path and not path[-1].endswith("attention"):
            continue
        if linear in _SHARED:
            wide[name] = rows(linear, values)
        elif (linear, leaf) == ("output", "weight"):
            wide[name] = rows(linear, values.T).T
    return wide
