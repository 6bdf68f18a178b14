from functools import partial

import pytest

from attentest.interfaces import python
from attentest.judging.bench import Bench


@pytest.fixture(autouse=True)
def verdicts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge code that is wrong without a search for its causes, which takes longer than judging.

    The tests of a target look at verdicts, and at counterexamples of any size.
    """
    monkeypatch.setattr(python, "Bench", partial(Bench, effort=0.2, shrink=False, diagnose=False))
