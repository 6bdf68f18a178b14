"""The ranking of the variants that reproduce a wrong answer."""

import time
from collections.abc import Sequence

from attentest.analysis.diagnosis.evidence import Evidence
from attentest.analysis.diagnosis.explain import SECONDS
from attentest.analysis.diagnosis.variants import Variant
from attentest.results.verdict import LikelyCause


class Standing:
    """Variants ranked by how many answers of several examples they give otherwise.

    Ties keep the order of the variants, which come with the likeliest first.
    """

    def __init__(self, variants: Sequence[Variant], examples: Sequence[Evidence]) -> None:
        self._variants = variants
        self._missed = [0] * len(variants)
        self._left = [0.0] * len(variants)
        end = time.perf_counter() + SECONDS
        for example in examples:
            if time.perf_counter() < end:
                self._look(example)

    def _look(self, example: Evidence) -> None:
        for number, variant in enumerate(self._variants):
            missed, left = example.unlike(variant.backend())
            self._missed[number] += missed
            self._left[number] = max(left, self._left[number])

    @property
    def perfect(self) -> bool:
        """Whether one misses nothing."""
        return 0 in self._missed

    def likely_causes(self, most: int) -> tuple[LikelyCause, ...]:
        """Return the first `most`, in words, with the largest difference that is left."""
        ranks = sorted(range(len(self._variants)), key=lambda number: self._missed[number])
        return tuple(
            LikelyCause(one.kind, one.names, one.text, self._left[rank], self._missed[rank])
            for rank in ranks[:most]
            for one in (self._variants[rank],)
        )
