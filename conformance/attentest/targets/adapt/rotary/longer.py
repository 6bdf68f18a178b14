"""Positions beyond the length that rotary positions are built for: some turn them otherwise."""

from collections.abc import Iterator

import numpy as np

from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.rotary.measuring import SIZES, Shown, X, answer
from attentest_spec import Setting
from attentest_spec.rotary import rotary
from attentest_spec.setting import Tokens

_GREATEST = 3
"""The length that they are built for, which is less than that of the probe."""

_CLOSE = 1e-5
"""The difference of numbers that rounding in single precision makes."""

_ENOUGH = 1_000_000
"""A length that no position of a clause reaches."""


def demand_same_beyond(own: str, best: Shown, reading: Reading) -> None:
    """Raise Unclear where longer sequences are turned by no rule that could be a mistake.

    Positions that begin anew or stay at the last one are mistakes, and are judged. Frequencies that
    change with the length, as those of dynamic scaling, are a design of published models.
    """
    made = best.form.maker.made
    argument = made.roles.get("length", "") if made is not None else ""
    if not argument or best.wrong or reading.anyway:
        return
    actual = answer(best.form, X, None, sizes=SIZES.but(max_length=_GREATEST))
    given = Setting(SIZES, best.choices)
    known = (rotary(given, X, one) for one in places_beyond(len(X), X.shape[2], _GREATEST))
    if actual is None or any(np.abs(actual - one).max() <= _CLOSE for one in known):
        return
    raise Unclear(
        f"{own} turns a sequence of {X.shape[2]} positions otherwise than the reference where "
        f"{argument} is {_GREATEST}, and shorter ones alike. Either that is a mistake, or "
        f"frequencies that change with the length, as by dynamic scaling, which is not specified. "
        f"--give {argument}={_ENOUGH} (in Python: given={{{argument!r}: {_ENOUGH}}}) judges it "
        f"with a length that no sequence has."
    )


def places_beyond(batch: int, length: int, greatest: int) -> Iterator[Tokens | None]:
    """Yield the positions (B, T) that are right, and those that are known mistakes beyond some."""
    yield None
    places = np.arange(length)
    for wrong in (places % greatest, np.minimum(places, greatest - 1)):
        yield np.tile(wrong, (batch, 1))
