"""The rate that a schedule ends at: 0 in all listed schedules, an argument or a constant here."""

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.training.schedule_call import Schedule
from attentest.targets.adapt.training.schedule_names import last_rates
from attentest.targets.adapt.training.schedulers import Counting
from attentest_spec import Sizes
from attentest_spec.setting import Floats

_OTHER = 0.1
"""Another last rate than 0, at which a schedule is called to see what it is."""


def last_rate_arguments(thing: Any, reading: Reading) -> tuple[str, ...]:
    """Return the arguments of a schedule that are a last rate, and not 0 by default."""
    try:
        arguments = inspect.signature(thing).parameters
    except (TypeError, ValueError):  # it has no signature
        return ()
    own = last_rates(arguments, reading)
    return tuple(one for one in own if arguments[one].default not in (0, None))


def ending_at_zero(reading: Reading, arguments: Iterable[str]) -> Reading:
    """Return the reading with 0 for the arguments of a last rate."""
    return replace(reading, given={**reading.given, **dict.fromkeys(arguments, 0.0)})


def require_use_of_last_rates(
    own: str, found: Schedule | Counting, arguments: Iterable[str], probes: Iterable[Sizes]
) -> None:
    """Raise Unclear where another last rate than 0 gives rates that do not go down to it."""
    names = [*arguments, *found.ends]
    if not names or all(_goes_down(found, names, one) for one in probes):
        return
    raise Unclear(
        f"The rates of {own} are those of a listed schedule where {names[0]} is 0, and with "
        f"{names[0]}={_OTHER:g} they neither go from the greatest rate down to it nor are kept "
        f"above it. If that is meant, --anyway judges the rest, with 0."
    )


def _goes_down(found: Schedule | Counting, names: list[str], probe: Sizes) -> bool:
    """Say whether the rates with another last rate are those that end at 0, scaled or cut off."""
    steps = (1, 2, probe.warmup, probe.warmup + 1, 30, probe.total_steps - 1, probe.total_steps)
    try:
        to_zero, actual = (_rates(found, names, end, probe, steps) for end in (0.0, _OTHER))
    except Exception:  # code that a user wrote may raise anything
        return False
    greatest = probe.factor if "factor" in found.sizes else 1.0
    warm = np.array(steps) <= probe.warmup
    return any(
        np.allclose(actual[~warm], one[~warm], rtol=1e-6)
        and (np.allclose(actual[warm], one[warm]) or np.allclose(actual[warm], to_zero[warm]))
        for one in _ways(to_zero, greatest)
    )


def _ways(to_zero: Floats, greatest: float) -> Iterator[Floats]:
    """Yield the rates that a last rate, or ratio of rates, gives: scaled to it, or cut off."""
    for end in (_OTHER, _OTHER * greatest):
        yield end + (1 - end / greatest) * to_zero
        yield np.maximum(end, to_zero)


def _rates(
    found: Schedule | Counting, names: list[str], end: float, probe: Sizes, steps: tuple[int, ...]
) -> Floats:
    fixed = {**found.fixed, **{one: end for one in names if one not in found.ends}}
    moved = replace(found, fixed=fixed)
    if isinstance(moved, Schedule):
        moved = replace(moved, last_rate=end)
    rate = moved.at(probe)
    return np.array([float(rate(step)) for step in steps])
