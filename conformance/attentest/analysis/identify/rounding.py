"""Tells the arithmetic of a softmax from that of what is around it."""

import numpy as np

from attentest.analysis.identify.parts import Part
from attentest.analysis.identify.station import Station
from attentest.harness.errors import Absent, BackendError, Violation
from attentest_spec import Choices
from attentest_spec.contract import Input


def rounding_elsewhere(part: Part, width: int) -> str:
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
    """
    drawn = part.drawn()
    still = {name: np.zeros_like(one) if "query" in name else one for name, one in drawn.items()}
    exact = part.choices.but(softmax_arithmetic="as-computed", rotary_arithmetic="as-computed")
    try:
        station = Station.of(part.probe, still, part.inputs())
        single = station.fits(exact.but(softmax_arithmetic="float32"))
        return single and not station.fits(exact)
    except (Absent, BackendError, Violation):
        return False
