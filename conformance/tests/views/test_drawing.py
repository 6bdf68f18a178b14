"""Properties that all plots share."""

import sys

import pytest
from costs import QUICK, clockwork

from attentest.results.optional import Missing
from attentest.studies.cost.measure import side_by_side
from attentest.views.plots import drawing
from attentest.views.plots.cost import times
from attentest.views.plots.learning import loss_curves


def test_twelve_backends_are_told_apart_by_colour_and_marker() -> None:
    stands, _ = clockwork(*range(1, 13))
    lines = times(side_by_side(stands, QUICK).as_dict()).axes[0].lines
    named = [one for one in lines if not str(one.get_label()).startswith("_")]
    assert len({(one.get_color(), one.get_marker()) for one in named}) == len(named) == 12


@pytest.mark.parametrize("name", [r"a$\foo$b", "$x$", "_mine.py", "plain"])
def test_a_name_is_shown_letter_by_letter(name: str) -> None:
    points = [
        {"step": step, "training": 1.0, "validation": 1.0, "tokens": 0.5, "sequences": 0.5}
        for step in (0, 1)
    ]
    found = {"backends": [name], "curves": [{"backend": name, "points": points}]}
    assert f">{name}<" in drawing.render(loss_curves(found), "svg").decode().replace("> ", ">")


def test_a_missing_library_is_told_of_plots_as_of_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Missing, match=r"^This needs matplotlib, .*attentest\[report\]"):
        drawing.figure(1, 1)
