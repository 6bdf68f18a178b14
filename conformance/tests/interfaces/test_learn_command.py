"""`attentest learn`, as a user types it."""

import xml.etree.ElementTree as Xml
from dataclasses import asdict

import pytest
from arrival import hurried
from click.testing import CliRunner, Result
from curves import FOUND

from attentest.interfaces.cli.main import main
from attentest.results import files
from attentest.results.output import Occupied
from attentest.studies.learning.learn import side_by_side
from attentest.studies.learning.regime import Regime
from attentest.studies.learning.result import Point
from attentest.studies.learning.task import BadTask

TARGETS = """
from attentest.harness.oracle import Reference
from attentest_spec import Choices
import os, time

def plain():
    from attentest.faults.reference_models import Plain, reference_backend
    return reference_backend(Plain, dict(tying="none"), "plain")

backend = plain()
silent = Reference(Choices())
parts = Reference(Choices(), components=("attention",))

class Dying(Reference):
    def build(self, *given, **named):
        print("a last word")
        os._exit(5)

class Hanging(Reference):
    def build(self, *given, **named):
        {announced}
        time.sleep(86400)

dying, hanging = Dying(Choices()), Hanging(Choices())
"""

SMALL = ("--length", "4", "--steps", "4", "--every", "2", "--width", "8", "--heads", "2")


def command(*words: str, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(main, ["learn", *words])


def said(result: Result) -> str:
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def target(tmp_path_factory, place):
    path = tmp_path_factory.mktemp("targets") / "learners.py"
    path.write_text(TARGETS.format(announced=place.code))
    return str(path)


@pytest.mark.proof
def test_the_command_trains_shows_writes_and_draws(target, tmp_path):
    out = ("--json", str(tmp_path / "a.json"), "--plot", str(tmp_path / "a.svg"))
    result = command(target, f"{target}:parts", *SMALL, *out, "--seeds", "2")
    assert result.exit_code == 0, result.output
    assert "The task copy of length 4: 4 steps of 30 fresh questions" in said(result)
    assert "provides no encoder-decoder model and was left out" in said(result)
    assert "by step (means over 2 seeds)" in said(result)
    found = files.read(tmp_path / "a.json", "learning")
    assert [(one["backend"], one["seed"]) for one in found["curves"]] == [(target, 0), (target, 1)]
    assert [point["step"] for point in found["curves"][0]["points"]] == [0, 2, 4]
    assert found["curves"][0]["points"] != found["curves"][1]["points"]
    assert Xml.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


FAILING = {
    "dying": "exit code 5 (a last word)",
    "hanging": "no answer within 3600 seconds",
    "silent": "its model offers no gradient",
}


def test_those_that_fail_are_told_and_cost_the_others_nothing(target, place, monkeypatch):
    monkeypatch.setattr(
        "attentest.interfaces.cli.training.learn.WORKERS", 1
    )  # no neighbour meets the limit
    failing = [f"{target}:{name}" for name in FAILING]
    with hurried(place, 3600.0):
        result = command(*failing, target, *SMALL, "--timeout", "3600")
    assert result.exit_code == 1, result.output
    for name, why in FAILING.items():
        assert f"{name} was not trained: " in said(result)
        assert why in said(result)
    assert "sequences" in said(result)


def test_one_that_cannot_be_loaded_is_told_and_exits_with_3(target):
    result = command(f"{target}:missing", f"{target}:silent", target, *SMALL)
    assert result.exit_code == 3, result.output
    assert "missing was not trained: " in said(result)
    assert "no object named 'missing'" in said(result)
    assert "sequences" in said(result)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("nobody",), "There is no backend named 'nobody'"),
        (("a.py", "--task", "cpy"), "did you mean copy"),
        (("a.py", "--steps", "0"), "steps is at least 1"),
        (("a.py", "--seeds", "0"), "'--seeds': 0 is not in the range x>=1"),
        (("a.py", "--seed", "-1"), "'--seed': -1 is not in the range x>=0"),
        (("a.py", "--width", "9"), "width (d_model) is a multiple of heads; 9 is none of 4"),
        (("a.py", "--length", "1"), "Give it a larger length"),
        (("a.py", "--plot", "a.jpg"), "A plot is FILE.svg or FILE.png"),
        (("a.py", "--plot", "nowhere/a.svg"), "there is no folder nowhere"),
        (("a.py", "--json", "other.json"), "it was left as it is"),
        (("a.py", "--plot", "other.svg"), "was left as it is"),
        (("a.py", "--json", "a.svg", "--plot", "./a.svg"), "--json and --plot both name a.svg"),
    ],
)
def test_invalid_options_are_refused_before_anything_runs(words, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("other.json", "other.svg"):
        (tmp_path / name).write_text("{}")
    result = command(*words)
    assert result.exit_code == 2
    assert why in said(result)
    assert {(tmp_path / f"other.{kind}").read_text() for kind in ("json", "svg")} == {"{}"}


class Fake:
    """A learner that learns nothing."""

    def __init__(self, **limits):
        self.limits = limits

    def call(self, method, listen=None, **arguments):
        if method == "facts":
            return {"components": ["model"], "choices": {}, "limits": self.limits}
        self.regime = Regime.from_dict(arguments["regime"])
        return {"points": [asdict(Point(0, None, 1.0, 0.0, 0.0))], "seconds": 0, "cpu_seconds": 0}


def test_a_precision_that_one_lacks_is_changed_for_all_and_told():
    learners = {"one": Fake(), "two": Fake(precisions=("float64",))}
    found = side_by_side(learners, Regime.of(), (0,))
    assert {one.regime.precision for one in learners.values()} == {"float64"}
    assert "float64 instead of float32, which two does not compute in" in found.notes[0]


def test_backends_that_share_no_precision_are_refused():
    with pytest.raises(BadTask, match="share no precision"):
        side_by_side({"one": Fake(precisions=("float16",))}, Regime.of(), (0,))


def test_a_file_of_others_ends_the_training():
    class Blocked(Fake):
        def call(self, method, listen=None, **arguments):
            if method == "train":
                raise Occupied("a file is there")
            return super().call(method, listen, **arguments)

    with pytest.raises(Occupied):
        side_by_side({"one": Fake(), "two": Blocked()}, Regime.of(), (0,), workers=2)


@pytest.mark.parametrize("columns", [80, 160])
def test_the_view_fits(columns, capsys):
    from rich.console import Console

    from attentest.views.learning import show

    show(Console(width=columns), FOUND)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.split()[:2] == ["100", "0.123"] for line in lines)
