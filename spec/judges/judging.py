"""What an outside judge says against an oracle, and whether they agree."""

from dataclasses import dataclass

import numpy as np

from attentest_spec.setting import Array, Floats


@dataclass(frozen=True)
class Answer:
    """What the oracle says, what the judge says, and how far they may be apart."""

    oracle: Floats
    expected: Array
    bound: Floats

    @property
    def share(self) -> float:
        """The largest used share of the bound; infinite where numbers that must be equal differ."""
        if self.oracle.shape != self.expected.shape:
            return float("inf")
        expected = self.expected.astype(np.float64)
        same = (self.oracle == expected) | (np.isnan(self.oracle) & np.isnan(expected))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(same, 0.0, np.abs(self.oracle - expected) / self.bound)
        worst = float(np.max(shares, initial=0.0))
        return worst if worst == worst else float("inf")
