"""The rate of dropout, measured where one number alone passes through it.

Parameters are zero but for one path: a single number goes through the part, and what training
makes of it is one of few values. With k sites of dropout at a rate p in a row on its way, it is
kept with the probability (1 - p)^k, and then divided by (1 - p)^k. Where the sites are, and how
many, is not prescribed.

The share of kept samples is held to Hoeffding's bound: of N independent samples, it is further from
its probability than t with a probability of at most 2 exp(-2 N t^2). The tolerance t is the one for
which that is :data:`FALSE_ALARM`.
"""

import copy
from collections.abc import Mapping
from functools import partial
from math import log, sqrt
from typing import Annotated

import numpy as np

from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, error_bound
from attentest.testing.assertions import holds
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.contract import Input
from attentest_spec.parameters import shapes
from attentest_spec.setting import Array, Floats

RATE = 0.25
"""The rate: each power of 1 - p is exact in binary, and none of them is 1 - 2 p."""

SAMPLES = 1000
"""The number of equal samples, each of which drops or keeps the number on its own."""

FALSE_ALARM = 1e-11
"""The probability with which correct code is accused by one measurement; a run has up to forty."""

_SITES = range(1, 6)
"""The numbers of sites that a path may have."""

_CALLS = 200
"""The number of samples where each takes a call of its own."""

_FIRST_CALLS = 64
"""Calls of which one differs where any randomness is left: 64 that keep all are no chance."""

Path = Mapping[str, float]
"""The weights on the path, and the number that each of them multiplies by; the last one last.

A negative weight is that of the last column, which :func:`path_input` sets to -1: dropout acts on
both columns independently.
"""


def build_path(subject: Subject, component: str, sizes: Sizes, path: Path) -> Probe:
    """Build a part of dropout :data:`RATE` that lets one number through, along `path`.

    Its norms have a weight (gamma) of 1; all other parameters are 0.
    """
    dropping = sizes.but(dropout=RATE)
    values = {
        name: np.full(shape, float(name.endswith("gain")))
        for name, shape in shapes(component, dropping, subject.choices).items()
    }
    for name, number in path.items():
        values[name][0, 0 if number > 0 else -1] = number
    return subject.part(component, dropping, parameters=values)


def build_linear(subject: Subject, draw: Draw, sizes: Sizes) -> Probe:
    """Build a feed-forward network that is linear in each positive input, also where it drops some.

    Each inner number is that of one input, and its gate that of another. All are so large that the
    activation returns them as they are, whether dropout has divided them or not; 0 stays 0. Their
    products are within float16, and the second map makes them small again.
    """
    values = draw.parameters("feed_forward", sizes)
    values["outer.weight"] = values["outer.weight"] / 64
    for column, linear in enumerate(("inner", "gate")):
        for name in (f"{linear}.weight", f"{linear}.bias"):
            if name in values:
                large = 8 + np.abs(values[name])
                rows, columns = np.ogrid[: sizes.d_ff, : sizes.d_model]
                read = (rows + column) % sizes.d_model == columns
                values[name] = large * read if name.endswith("weight") else large
    return subject.part("feed_forward", sizes, parameters=values)


def path_input(sizes: Sizes, length: int = 1) -> Annotated[Floats, "1 L D"]:
    """Return equal rows of shape (1, L, D), whose first number is what a path lets through."""
    row = np.linspace(1.0, -1.0, sizes.d_model)
    return np.broadcast_to(row, (1, length, sizes.d_model)).copy()


def scored_input(sizes: Sizes) -> Annotated[Floats, "1 2 D"]:
    """Return two rows of the shape (1, 2, D); the first has no number on the path, and no score."""
    rows = path_input(sizes, length=2)
    rows[:, 0, 0] = 0.0
    return rows


def drops_at_the_rate(probe: Probe, path: Path, *inputs: Input) -> None:
    """Demand that the number on `path` is dropped at the rate, in the last row of `inputs`.

    A part that drops nothing on the path is not judged: sites are not prescribed.
    """
    trained = _train(probe, inputs)
    if probe.precision in HALF_PRECISIONS or (trained == trained[:1]).all():
        return
    for exact in (False, True):
        rows = partial(_rows, probe, path, trained, inputs, exact=exact)
        dropped, kept = rows(0.0), {number: rows(_factor(number)) for number in _SITES}
        sites = max(_SITES, key=lambda number: int(kept[number].sum()))
        strange = int((~dropped & ~kept[sites]).sum())
        if not strange:
            break
    share = (1 - RATE) ** sites
    holds(
        strange == 0,
        f"At a dropout rate of {RATE}, {strange} of {len(trained)} equal samples are neither "
        f"dropped nor divided by {share:.4g}, as {sites} site(s) of dropout would do.",
        actual=trained,
    )
    found, allowed = float(kept[sites].mean()), tolerance(len(trained))
    holds(
        abs(found - share) <= allowed,
        f"At a dropout rate of {RATE}, a share of {found:.3f} of {len(trained)} equal samples is "
        f"kept and divided by {share:.4g}; the share is {share:.4g}, give or take {allowed:.2g}.",
        actual=trained,
    )


def drops_single_keys(probe: Probe, path: Path, *inputs: Input) -> bool:
    """Return whether attention on `path` drops one of two equal keys and keeps the other."""
    trained = _train(probe, inputs)
    factors = [_factor(sites) / 2 for sites in _SITES]
    return any(
        bool(_rows(probe, path, trained, inputs, factor, exact=exact).any())
        for exact in (False, True)
        for factor in factors
    )


def tolerance(samples: int) -> float:
    """Return the tolerance of the share of kept samples; 0.114 for :data:`SAMPLES`."""
    return sqrt(log(2 / FALSE_ALARM) / (2 * samples))


def _factor(sites: int) -> float:
    return float((1 - RATE) ** -sites)


def _train(probe: Probe, inputs: tuple[Input, ...]) -> Annotated[Floats, "N L D"]:
    """Return the outputs of training for many samples equal to `inputs`, in evaluation mode after.

    Where a call drops the same of all its samples, there are as many calls.
    """
    probe.train()
    many = (
        np.repeat(one, SAMPLES, axis=0) if isinstance(one, np.ndarray) else one for one in inputs
    )
    trained = as_floats(probe.output(*many))
    if (trained == trained[:1]).all():
        trained = _call_often(probe, inputs, _FIRST_CALLS)
        if (trained != trained[:1]).any():
            more = _call_often(probe, inputs, _CALLS - _FIRST_CALLS)
            trained = np.concatenate([trained, more])
    probe.eval()
    return trained


def _call_often(probe: Probe, inputs: tuple[Input, ...], number: int) -> Annotated[Floats, "N L D"]:
    return np.concatenate([as_floats(probe.output(*inputs)) for _ in range(number)])


def _rows(
    probe: Probe,
    path: Path,
    trained: Annotated[Floats, "N L D"],
    inputs: tuple[Input, ...],
    factor: float,
    *,
    exact: bool,
) -> Annotated[Array, "N 1"]:
    """Return which last rows are those of a number that dropout multiplies by `factor`.

    Where it is not `exact`, only the part of the tolerance counts that costs no evaluation of the
    reference: a row may be missing then, and none is too many.
    """
    other, last = copy.copy(probe), list(path)[-1]
    other.parameters = {**probe.parameters, last: probe.parameters[last] * factor}
    expected = as_floats(other.expected(*inputs).output)
    bound = error_bound(other, inputs, expected, difference=np.inf if exact else 0.0)
    same: Array = np.abs(trained - expected).max(axis=-1) <= bound
    return same[:, -1:]
