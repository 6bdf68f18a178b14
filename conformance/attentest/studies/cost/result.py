"""The result of a cost measurement, as plain values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from attentest.studies.cost.layers import LayerType
from attentest.studies.cost.plan import Plan
from attentest.studies.participants import Failure

TIME, MEMORY, FLOPS = "time", "memory", "FLOPs"
"""The quantities whose growth is told."""


@dataclass(frozen=True)
class Spread:
    """The median of what was measured in all rounds, and its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of `values`, of which there is at least one."""
        low, median, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
        return cls(median, low, high)


@dataclass(frozen=True)
class Measurement:
    """Cost of one pass of one backend at one point.

    `seconds` are those of a call, `ratio` the same against the first backend that has the pass,
    taken round by round.
    `speed` is the share of this core's speed at a plain matrix product of NumPy (None in precisions
    in which that is slow, and where nothing is multiplied). `memory` is the peak in bytes, beside
    parameters and inputs, over several calls (None where unknown). `flops` are those of the
    formula, `counted` those that the backend's framework counts (None where it cannot).
    """

    backend: str
    length: int
    width: int
    which: str
    seconds: Spread
    ratio: Spread
    speed: Spread | None
    memory: Spread | None
    flops: int
    counted: int | None

    @property
    def agrees(self) -> bool:
        """Whether the formula and the count, where there is one, are the same."""
        return self.counted is None or self.counted == self.flops


@dataclass(frozen=True)
class Parameters:
    """Number of trained parameters of a backend at a width: counted, and by the spec."""

    backend: str
    width: int
    counted: int | None
    expected: int

    @property
    def agrees(self) -> bool:
        """Whether the two, where both are known, are the same."""
        return self.counted is None or self.counted == self.expected


@dataclass(frozen=True)
class Growth:
    """Growth of a quantity of a pass of a backend over "length" or "width".

    `exponent` is the slope of its logarithm between the two largest sizes, `error` its standard
    error (None where it is not known). `terms` are a, b and c of a + b n + c n^2, nearest at all
    sizes and none of them negative, and `shares` what each makes of the whole at the largest size;
    None where there are fewer than three sizes.
    """

    backend: str
    over: str
    which: str
    quantity: str
    exponent: float
    error: float | None
    terms: tuple[float, float, float] | None
    shares: tuple[float, float, float] | None


@dataclass(frozen=True)
class Cost:
    """Costs of backends: at every point, their growth, and the paper's figures.

    Ratios are to the first of `backends` that has the pass. `layers` is Table 1 of the paper at the
    longest length.
    """

    plan: Plan
    backends: tuple[str, ...]
    parameters: tuple[Parameters, ...]
    measurements: tuple[Measurement, ...]
    growths: tuple[Growth, ...]
    layers: tuple[LayerType, ...]
    failures: tuple[Failure, ...]

    def at(self, backend: str, length: int, width: int, which: str) -> Measurement | None:
        """Return what was measured there, None where nothing was."""
        for one in self.measurements:
            if (one.backend, one.length, one.width, one.which) == (backend, length, width, which):
                return one
        return None

    def rows(self) -> list[dict[str, Any]]:
        """Return the measurements as flat rows, as a data frame takes them."""
        return [_flat(asdict(one)) for one in self.measurements]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """Show the measurements in a notebook."""
        from attentest.results.html_table import table

        rows = self.rows()
        return table(list(rows[0]), [list(one.values()) for one in rows]) if rows else ""


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= {name: value["median"], f"{name}_low": value["low"]}
            flat |= {f"{name}_high": value["high"]}
        elif name in ("speed", "memory"):
            flat |= dict.fromkeys((name, f"{name}_low", f"{name}_high"))
        else:
            flat[name] = value
    return flat
