"""Comparison of an oracle with an independent implementation."""

from dataclasses import dataclass

import numpy as np

from attentest_spec.setting import Array, Floats


@dataclass(frozen=True)
class Answer:
    """The output of the oracle, that of the judge, and the tolerance of their difference."""

    oracle: Floats
    expected: Array
    bound: Floats

    @property
    def share(self) -> float:
        """The largest share of the tolerance that is used; infinite where exact numbers differ."""
        if self.oracle.shape != self.expected.shape:
            return float("inf")
        expected = self.expected.astype(np.float64)
        same = (self.oracle == expected) | (np.isnan(self.oracle) & np.isnan(expected))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(same, 0.0, np.abs(self.oracle - expected) / self.bound)
        worst = float(np.max(shares, initial=0.0))
        return worst if worst == worst else float("inf")
