"""Tells the arithmetic of a softmax or an RMS norm from other differences of that size."""

import numpy as np

from attentest.analysis.identify.parts import Part
from attentest.analysis.identify.station import Station
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.relative_rounding import exceeds_rounding, with_zeros
from attentest.harness.tolerances import as_floats
from attentest_spec import Choices
from attentest_spec.contract import Input
from attentest_spec.setting import Floats


def contradiction(part: Part, axis: str, width: int) -> str:
    """Return what shows that `axis` is not float32, or not alone, in one clause; "" if nothing."""
    if axis == "softmax_arithmetic" and (where := _rounding_elsewhere(part, width)):
        return f"{part.component} rounds to float32, and not in its softmax: {where}"
    if axis == "rms_arithmetic" and _is_no_rounding(part):
        return f"{part.component} differs by more than float32 rounds where its numbers are small"
    return ""


def _rounding_elsewhere(part: Part, width: int) -> str:
    """Return what shows that float32 is not, or not only, the precision of the softmax; "" if none.

    With one key its weight is 1 in every precision. A scale that is the root of a square has no
    rounding, and all else of attention rounds there as it does at other widths.
    """
    if explains(part, part.choices, part.inputs(length=1)) is False:
        return "it rounds with one key, too"
    exact = part.choices.but(softmax_arithmetic="as-computed")
    if part.component == "attention" and explains(part, exact, part.inputs(head=width)):
        return f"heads of width {width}, whose scale is exact, show none"
    return ""


def explains(part: Part, choices: Choices, inputs: tuple[Input, ...]) -> bool | None:
    """Return whether `choices` explain the answer to other `inputs`, None where there is none."""
    try:
        return Station.of(part.probe, part.drawn(), inputs).fits(choices)
    except (Absent, BackendError, Violation):
        return None


def rounds_equal_scores(part: Part) -> bool:
    """Say whether the softmax rounds to float32 where all scores are 0, and nothing else shows.

    Positions that turn queries of zeros change nothing, in whatever precision their tables are.
    Those that are added round as well, which large embeddings hide.
    """
    still = part.tied({name: _without_scores(name, one) for name, one in part.drawn().items()})
    exact = part.choices.but(softmax_arithmetic="as-computed", rotary_arithmetic="as-computed")
    try:
        station = Station.of(part.probe, still, part.inputs())
        single = station.fits(exact.but(softmax_arithmetic="float32"))
        return single and not station.fits(exact)
    except (Absent, BackendError, Violation):
        return False


def _without_scores(name: str, values: Floats) -> Floats:
    """Return the parameter `name`, without any effect of queries, and large in an embedding."""
    if "query" in name:
        return np.zeros_like(values)
    return values * _LARGE if "embedding" in name else values


_LARGE = 1e4
"""The factor of embeddings next to which the rounding of positions does not show."""


def _is_no_rounding(part: Part) -> bool:
    """Say whether a part that is an RMS norm differs by more than float32 rounds, number by number.

    Where the norm is inside of another part, its numbers cannot be seen one by one: False.
    """
    if part.component != "rms_norm":
        return False
    x = with_zeros(as_floats(part.inputs()[0]))
    try:
        station = Station.of(part.probe, part.drawn(), (x,))
    except (Absent, BackendError, Violation):
        return False
    return bool(exceeds_rounding(station.probe, x, station.actual, part.choices).any())
