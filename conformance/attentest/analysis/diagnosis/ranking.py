"""The ranking of the variants that reproduce a wrong answer."""

import time
from collections.abc import Sequence

from attentest.analysis.diagnosis.evidence import Example
from attentest.analysis.diagnosis.explain import SECONDS
from attentest.analysis.diagnosis.variants import Variant
from attentest.results.verdict import LikelyCause


class Ranking:
    """Variants ranked by how many outcomes of several examples they do not reproduce.

    Ties keep the order of the variants, which come with the likeliest first.
    """

    def __init__(self, variants: Sequence[Variant], examples: Sequence[Example]) -> None:
        self._variants = variants
        self._missed = [0] * len(variants)
        self._remaining = [0.0] * len(variants)
        end = time.thread_time() + SECONDS
        for example in examples:
            if time.thread_time() < end:
                self._compare(example)

    def _compare(self, example: Example) -> None:
        for number, variant in enumerate(self._variants):
            missed, remaining = example.mismatches(variant.backend())
            self._missed[number] += missed
            self._remaining[number] = max(remaining, self._remaining[number])

    @property
    def perfect(self) -> bool:
        """Whether a variant reproduces every outcome."""
        return 0 in self._missed

    def likely_causes(self, most: int) -> tuple[LikelyCause, ...]:
        """Return the first `most`, in words, with the largest difference that remains."""
        ranks = sorted(range(len(self._variants)), key=lambda number: self._missed[number])
        return tuple(
            LikelyCause(one.kind, one.names, one.text, self._remaining[rank], self._missed[rank])
            for rank in ranks[:most]
            for one in (self._variants[rank],)
        )
