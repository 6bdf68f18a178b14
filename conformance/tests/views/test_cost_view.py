"""Views of a cost: terminal, plots, and the command."""

import io
import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner
from costs import QUICK, clockwork
from rich.console import Console

from attentest.interfaces.cli.main import main
from attentest.results import files
from attentest.studies.cost import BOTH, FORWARD, Cost
from attentest.studies.cost.measure import side_by_side
from attentest.studies.cost.memory import MIB, RESOLUTION
from attentest.studies.cost.stand import Holding
from attentest.views.cost import show
from attentest.views.plots.cost import memory, ratios, times, together
from attentest.views.plots.drawing import render


@pytest.fixture(scope="module")
def found() -> Cost:
    stands, _ = clockwork(1e-3, 2.5e-3, 4e-3, 1, d="sample")
    return side_by_side(stands, QUICK)


@pytest.mark.parametrize("width", [80, 160])
def test_the_view_fits_the_terminal(found: Cost, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    show(console, found)
    message = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, message.splitlines())) <= width
    assert "x2.50 (2.50-2.50)" in message
    assert "d was not measured: it is tired." in message
    assert "n^2 100%" in message
    assert "recurrent" in message


def test_pictures_have_every_series_and_no_other(found: Cost) -> None:
    plain = json.loads(files.text("cost", found.as_dict()))
    for draw in (times, ratios, memory):
        axes = draw(plain).axes
        assert len(axes) == 4  # passes and sweeps
        for panel in axes:
            assert panel.get_legend_handles_labels()[1] == ["a", "b", "c"]
    over_length = times(plain).axes[0].lines[0]
    assert list(over_length.get_xdata()) == [3, 6, 12]
    assert list(over_length.get_ydata()) == pytest.approx([3, 6, 12])  # milliseconds


def test_memory_that_cannot_be_told_is_an_open_marker_at_the_resolution(found: Cost) -> None:
    plain = json.loads(files.text("cost", found.as_dict()))
    for one in plain["measurements"]:
        one["memory"]["low"] = 0
        if one["length"] < 12 or one["backend"] == "b":
            one["memory"] = {"median": 0, "low": 0, "high": 0}
    axes = memory(plain).axes[0]
    least = RESOLUTION / MIB
    a, *_ = (one for one in axes.lines if one.get_label() == "a")
    assert (list(a.get_xdata()), list(a.get_ydata())) == ([12], [144])
    hidden = [one for one in axes.lines if one.get_markerfacecolor() == "none"]
    assert [list(one.get_xdata()) for one in hidden] == [[3, 6], [3, 6, 12], [3, 6]]
    assert {value for one in hidden for value in one.get_ydata()} == {least}
    assert all(
        min(path.vertices[:, 1]) >= least for one in axes.collections for path in one.get_paths()
    )
    assert sorted(axes.get_legend_handles_labels()[1]) == ["a", "b", "c"]
    assert f"open: below {least:g}" in axes.get_ylabel()


@pytest.mark.proof
def test_an_svg_holds_texts_and_no_background(found: Cost) -> None:
    written = render(together(found.as_dict()), "svg").decode()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", written)
    assert {"a", "b", "c", "length (width 4)"} <= set(texts)
    assert "fill: #ffffff" not in written
    assert render(ratios(found.as_dict()), "png").startswith(b"\x89PNG")


def test_the_first_with_a_pass_is_what_the_others_are_told_against() -> None:
    stands, _ = clockwork(1e-3, 2e-3, 6e-3)
    holding = Holding(7, {FORWARD: 10}, {FORWARD: []})
    stands["a"].holding = lambda plan, point: asdict(holding)
    found = side_by_side(stands, QUICK)
    console = Console(file=io.StringIO(), width=80, color_system=None)
    show(console, found)
    message = console.file.getvalue()  # type: ignore[attr-defined]
    over_length = message.split(f"{BOTH}: time over length")[1].splitlines()
    assert over_length[2].split() == ["3", "-", "6", "ms", "x3.00", "(3.00-3.00)"]
    labels = [axes.get_ylabel() for axes in ratios(found.as_dict()).axes]
    assert [one.rpartition(" ")[2] for one in labels if one] == ["a", "b"]


def test_pictures_of_nothing_can_be_drawn() -> None:
    stands, _ = clockwork(1, a="facts")
    assert render(together(side_by_side(stands, QUICK).as_dict()), "svg")


SOUND = """
from attentest.faults.reference_models import Fused, Plain, reference_backend

plain = reference_backend(Plain, name="plain")
fused = reference_backend(Fused, name="fused")
"""

SMALL = ["--component", "feed_forward", "--lengths", "4,8", "--widths", "8", "--width", "8"]
SMALL += ["--length", "4", "--repeat", "2"]


@pytest.mark.proof
def test_the_command_measures_and_writes(tmp_path: Path) -> None:
    (tmp_path / "styles.py").write_text(SOUND)
    file, plot = tmp_path / "cost.json", tmp_path / "cost.svg"
    targets = [f"{tmp_path}/styles.py:{name}" for name in ("plain", "fused")]
    done = CliRunner().invoke(
        main, ["cost", *targets, *SMALL, "--json", str(file), "--plot", str(plot)]
    )
    assert done.exit_code == 0, done.output
    plain = files.read(file, "cost")
    assert plain["backends"] == targets
    assert all(one["counted"] == one["flops"] for one in plain["measurements"])
    assert plot.read_text().startswith("<?xml")
    again = CliRunner().invoke(main, ["cost", *targets, *SMALL, "--plot", str(plot)])
    assert again.exit_code == 2
    assert "was left as it is" in again.output


@pytest.mark.proof
def test_one_that_cannot_be_loaded_is_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "styles.py").write_text(SOUND)
    done = CliRunner().invoke(
        main, ["cost", f"{tmp_path}/styles.py:plain", f"{tmp_path}/no.py", *SMALL]
    )
    assert done.exit_code == 3
    assert "was not measured" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["nobody"], "There is no backend named"),
        (["x.py", "--lengths", "3,four"], "is no list of numbers"),
        (["x.py", "--widths", "6"], "cannot be divided among 4 heads"),
        (["x.py", "--plot", "x.gif"], "is neither"),
        (["x.py", "--dtype", "float8"], "float8"),
        (["x.py", "--json", "nowhere/x.json"], "there is no folder nowhere"),
        (["x.py", "--json", __file__], "it was left as it is"),
        (["x.py", "--plot", "nowhere/x.svg", "--json", "nowhere/x.svg"], "both name"),
    ],
)
def test_invalid_plan_is_refused_before_anything_starts(asked: list[str], message: str) -> None:
    done = CliRunner().invoke(main, ["cost", *asked])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
