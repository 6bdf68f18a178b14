"""Attention whose heads get their share of the width rounded down, without a loss of columns."""

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from attentest.analysis.identify.parts import Part
from attentest.analysis.identify.station import Station
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest_spec import Choices, Sizes
from attentest_spec.contract import Input
from attentest_spec.rotary import turned_width
from attentest_spec.setting import Floats

_OF_WIDTH = {
    "head_width": "d/h",
    "query_key_norm": "none",
    "attention_rotary": "none",
    "relative_bias": "none",
}
"""Options without which the width of a head is in the numbers, besides the scale of the scores."""

_SIZES = (Sizes(d_model=7, heads=2), Sizes(d_model=11, heads=3))
"""Widths that the heads do not divide, with remainders of one and two columns."""

_EVEN_SIZES = (Sizes(d_model=10, heads=3), Sizes(d_model=14, heads=4))
"""The same for what refuses odd widths."""

_SHARED = ("query", "key", "value")

_HEADS = (4, 8, 16, 32, 64)
"""The widths of heads that are turned, normalised or biased: the first one has two pairs."""


def rounds_heads(
    subject: Subject, component: str = "multi_head_attention", *, explained: bool = True
) -> bool:
    """Say whether heads that do not divide the width have it rounded down, and all of it is used.

    The projections of every attention in `component` lead from every column of the input to these
    heads, and from them to every column of the output. Code that leaves out columns has other
    numbers. Where the choices do not have it `explained` at other widths, as where something else
    is wrong with it, the shapes of its parameters have to say it.
    """
    known = subject.choices.as_dict()
    alone = all(known[name] == option for name, option in _OF_WIDTH.items())
    try:
        if component == "multi_head_attention" and not _is_explained(subject):
            return explained and _answers(subject)
        if not alone:
            return component == "multi_head_attention" and explained and _fits_by_columns(subject)
        sizes = _SIZES if subject.limits.odd_width else _EVEN_SIZES
        return all(_fits(subject, component, one, explained=explained) for one in sizes)
    except (Absent, BackendError, Violation):
        return False


def _is_explained(subject: Subject) -> bool:
    """Say whether attention of a width that the heads divide is that of the choices."""
    width = 4 * _head(subject.choices)
    return _station(subject, Sizes(d_model=width, heads=4)).fits(subject.choices)


def _answers(subject: Subject) -> bool:
    """Say whether attention takes parameters in the shapes of rounded heads, and answers then."""
    with suppress(BackendError):
        for sizes in _sizes_in_heads(subject):
            _station(subject, sizes)
        return True
    return False


def _station(subject: Subject, sizes: Sizes) -> Station:
    """Return a call of attention at `sizes`, which raises BackendError where it fails."""
    part = _part(subject, "multi_head_attention", sizes)
    return Station.of(part.probe, part.drawn(), part.inputs(length=4))


def _part(subject: Subject, component: str, sizes: Sizes) -> Part:
    """Return `component` as it is built at `sizes`, as far as its limits allow them."""
    return Part(component, subject.part(component, subject.limits.fitted(sizes)), subject.choices)


def _sizes_in_heads(subject: Subject) -> tuple[Sizes, Sizes]:
    """Return two widths that the heads do not divide, whose heads have pairs of columns."""
    width = _head(subject.choices)
    if subject.limits.odd_width:
        return Sizes(d_model=2 * width + 1, heads=2), Sizes(d_model=3 * width + 2, heads=3)
    return Sizes(d_model=3 * width + 2, heads=3), Sizes(d_model=4 * width + 2, heads=4)


def _fits_by_columns(subject: Subject) -> bool:
    """Say the same of attention whose heads are turned or normalised, or have a bias.

    As many columns as all heads have are given, the first and the last ones of the model, and the
    others are zeros: it computes there what attention of that width does.
    """
    width = _head(subject.choices)
    sizes = _sizes_in_heads(subject)
    return all(
        _fits_in(subject, subject.limits.fitted(one), kept)
        for one in sizes
        for kept in (slice(0, width * one.heads), slice(one.d_model - width * one.heads, None))
    )


def _head(choices: Choices) -> int:
    """Return the least width of a head of which two pairs of columns are turned, if any are."""
    if choices.attention_rotary == "none":
        return _HEADS[0]
    return next((one for one in _HEADS if turned_width(choices, one) >= _HEADS[0]), _HEADS[-1])


def _fits_in(subject: Subject, sizes: Sizes, kept: slice) -> bool:
    """Say whether attention at `sizes` is that of the columns `kept`, where the others are zeros.

    The reference has the parameters of these columns alone.
    """
    part = _part(subject, "multi_head_attention", sizes)
    given = tuple(_zeroed(one, kept) for one in part.inputs(length=4))
    station = Station.of(part.probe, part.drawn(), given)
    narrow = copy(station.probe)
    narrow.sizes = sizes.but(d_model=len(range(sizes.d_model)[kept]))
    narrow.parameters = _cut(station.probe.parameters, kept)
    inputs = tuple(one[..., kept] if _is_sequence(one) else one for one in given)
    actual = station.actual[..., kept]
    cut = replace(station, probe=narrow, inputs=inputs, actual=actual, known={}, states={})
    return cut.fits(subject.choices)


def _zeroed(given: Input, kept: slice) -> Input:
    """Return an input with zeros in all columns but `kept`; a mask stays what it is."""
    if not _is_sequence(given):
        return given
    found = np.zeros_like(given)
    found[..., kept] = given[..., kept]
    return found


def _is_sequence(given: Input) -> TypeGuard[Floats]:
    return isinstance(given, np.ndarray) and given.dtype.kind == "f"


def _cut(parameters: Mapping[str, Floats], kept: slice) -> dict[str, Floats]:
    """Return the parameters of attention for the columns `kept` of its input and its output."""
    found = dict(parameters)
    for name, values in parameters.items():
        if name in [f"{one}.weight" for one in _SHARED]:
            found[name] = values[:, kept]
        elif name in ("output.weight", "output.bias"):
            found[name] = values[kept]
    return found


def _fits(subject: Subject, component: str, sizes: Sizes, *, explained: bool) -> bool:
    """Say whether `component` at `sizes` computes what narrower heads do.

    The reference has heads of the whole width, whose last columns are zeros, and scores that are
    larger by the root of the quotient of both widths.
    """
    fitted = subject.limits.fitted(sizes)
    part = _part(subject, component, sizes)
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
