"""What all plots have in common."""

import sys

import pytest
from test_cost import QUICK, clockwork

from attentest import drawing
from attentest.cost.measure import side_by_side
from attentest.cost.plots import times
from attentest.extra import Missing


def test_twelve_backends_are_told_apart_by_colour_and_marker() -> None:
    stands, _ = clockwork(*range(1, 13))
    lines = times(side_by_side(stands, QUICK).as_dict()).axes[0].lines
    named = [one for one in lines if not str(one.get_label()).startswith("_")]
    assert len({(one.get_color(), one.get_marker()) for one in named}) == len(named) == 12


def test_a_missing_library_is_told_of_plots_as_of_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Missing, match=r"^This needs matplotlib, .*attentest\[report\]"):
        drawing.figure(1, 1)
