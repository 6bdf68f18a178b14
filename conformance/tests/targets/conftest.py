from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from attentest.interfaces import python
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Verdict

FEW = 5
"""The number of clauses from which on few examples of each are judged."""


@pytest.fixture(autouse=True)
def verdicts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge code that is wrong without a search for its causes, which takes longer than judging.

    The tests of a target look at verdicts, and at counterexamples of any size. Where they ask for
    all clauses of a component, these show that the code was read as it computes: a wrong reading
    fails in any example. A clause that is named is judged in full.
    """
    monkeypatch.setattr(python, "Bench", partial(Bench, shrink=False, diagnose=False))
    monkeypatch.setattr(python, "_verdicts", _verdicts)


def _verdicts(bench: Bench, slugs: Sequence[str]) -> list[Verdict]:
    few = bench if len(slugs) < FEW else replace(bench, effort=0.2)
    return [judge(few, slug) for slug in slugs]
