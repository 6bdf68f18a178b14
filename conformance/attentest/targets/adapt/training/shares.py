"""Sizes of a schedule as its arguments carry them: a warm-up may be a share of all steps."""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from attentest_spec import Sizes


def share_of(warmup: int, total: int) -> float:
    """Return the share of `total` steps whose whole number of steps is `warmup`."""
    share = warmup / total
    return share if int(share * total) >= warmup else math.nextafter(share, 1.0)


SHARE_SOURCE = ("import math", "", "", *inspect.getsource(share_of).splitlines(), "", "")
"""The lines that the text of a call with a share needs before it."""


def sized(arguments: Mapping[str, str], sizes: Sizes, *, share: bool) -> dict[str, Any]:
    """Return the values of `arguments`; with `share`, that of the warm-up is one of all steps."""
    given = {own: getattr(sizes, size) for own, size in arguments.items()}
    for own in [one for one, size in arguments.items() if share and size == "warmup"]:
        given[own] = share_of(sizes.warmup, sizes.total_steps)
    return given


def sized_text(
    arguments: Mapping[str, str], value: Callable[[str], str], *, share: bool
) -> list[str]:
    """Return `arguments` as code; `value` writes a size."""
    given = {own: value(size) for own, size in arguments.items()}
    for own in [one for one, size in arguments.items() if share and size == "warmup"]:
        given[own] = f"share_of({value('warmup')}, {value('total_steps')})"
    return [f"{own}={text}" for own, text in given.items()]
