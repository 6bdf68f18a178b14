"""`attentest compare`, as a user types it."""

import json

import pytest
from arrival import hurried
from click.testing import CliRunner, Result

from attentest.harness.oracle import Reference
from attentest.harness.process import Isolation
from attentest.interfaces.cli.main import main
from attentest.results import files
from attentest.studies.comparison import EXAMPLES
from attentest.studies.comparison.participant import account, local, recording, remote
from attentest.studies.comparison.recording import furthest
from attentest_spec import Choices

TARGETS = """
from attentest.harness.oracle import Reference
from attentest_spec import Choices
import os, time

PARTS = ("feed_forward", "generator")

def some(**choices):
    return Reference(Choices(**choices), components=PARTS)

backend = some()
other = some(output="logits")

class Wrong(Reference):
    def build(self, component, *given, **named):
        part = super().build(component, *given, **named)
        right = part._answer
        part._answer = lambda *given: right(*given) * (1.0 + (component == "generator"))
        return part

class Dying(Reference):
    def build(self, *given, **named):
        print("a last word")
        os._exit(5)

class Hanging(Reference):
    def build(self, *given, **named):
        {announced}
        time.sleep(86400)

wrong, dying, hanging = (kind(Choices(), components=PARTS) for kind in (Wrong, Dying, Hanging))
"""


def command(*words: str, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(main, ["compare", *words])


@pytest.fixture(scope="module")
def target(tmp_path_factory, place):
    path = tmp_path_factory.mktemp("targets") / "some_targets.py"
    path.write_text(TARGETS.format(announced=place.code))
    return str(path)


def said(result: Result) -> str:
    return " ".join(result.output.split())


@pytest.mark.parametrize("columns", [80, 160])
def test_the_command_shows_choices_numbers_and_the_explanation(target, columns):
    result = command(target, f"{target}:other", columns=columns)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("*  output"))
    assert "logits" in " ".join(lines[place : place + 12])
    assert "attentest explain generator.output" in said(result)
    assert "> generator: result" in said(result)
    assert "Explained by one choice: output probabilities -> logits" in said(result)
    paths = (line.replace(target, "") for line in result.output.splitlines())
    assert max(map(len, paths)) <= columns


def test_comparison_is_written_as_json_and_as_a_page(tmp_path, target):
    path, page = tmp_path / "found.json", tmp_path / "found.html"
    command(target, f"{target}:other", "--json", str(path), "--html", str(page))
    content = files.read(path, "comparison")
    assert content["backends"] == [target, f"{target}:other"]
    assert content["explanations"][0]["options"][0]["other"] == "logits"
    assert "generator.output" in page.read_text()


def test_a_file_of_the_users_is_left_before_anything_runs(tmp_path, target):
    path = tmp_path / "mine.json"
    path.write_text("mine")
    result = command(target, f"{target}:hanging", "--json", str(path))
    assert result.exit_code == 2
    assert "left as it is" in said(result)
    assert path.read_text() == "mine"


def test_unexplained_difference_exits_with_1_and_names_the_step(target):
    result = command(target, f"{target}:wrong")
    assert result.exit_code == 1
    assert "NOT EXPLAINED. the numbers first differ in generator: result" in said(result)
    assert "is not what the reference does under the same choices" in said(result)


def test_those_that_die_or_hang_cost_the_others_nothing(target, place, monkeypatch):
    monkeypatch.setattr(
        "attentest.interfaces.cli.compare.WORKERS", 1
    )  # no neighbour meets the limit
    words = [target, f"{target}:dying", f"{target}:hanging", f"{target}:other"]
    with hurried(place, 3600.0):
        result = command(*words, "--timeout", "3600")
    assert result.exit_code == 1
    for name, why in {"dying": "exit code 5", "hanging": "no answer within 3600 seconds"}.items():
        assert why in said(result)
        assert f"{name} was not compared" in said(result)
    assert "Explained by one choice" in said(result)


def test_one_that_cannot_be_loaded_is_told_and_exits_with_3(target):
    result = command(target, f"{target}:missing", f"{target}:other")
    assert result.exit_code == 3
    assert "no object named 'missing'" in said(result)
    assert "Explained by one choice" in said(result)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("nobody", "nowhere"), "There is no backend named 'nobody'"),
        (("one.py",), "name two or more"),
        (("one.py", "two.py", "--input", "smal"), "did you mean small"),
        (("one.py", "two.py", "--input", "none.json"), "cannot be read"),
    ],
)
def test_invalid_options_are_refused_before_anything_runs(words, why):
    result = command(*words)
    assert result.exit_code == 2
    assert why in said(result)


GOOD = {"source": [[1, 2, 0]], "target": [[1, 2]], "sizes": {"layers": 1, "d_model": 4}}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source": [[1, 2], [3]]}, "is no table of tokens"),
        ({"source": [[1, -2]]}, "is no table of tokens"),
        ({"source": [[1.5]]}, "is no table of tokens"),
        ({"target": "none"}, "is no table of tokens"),
        ({"source": [[1], [2]]}, "2 source and 1 target sentences"),
        ({"sizes": {"layer": 1}}, "did you mean layers"),
        ({"sizes": {"layers": "two"}}, "has to be a whole number"),
        ({"sizes": [1]}, "no table of names and numbers"),
    ],
)
def test_a_file_that_is_no_example_is_refused_with_what_one_looks_like(tmp_path, changes, why):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**GOOD, **changes}))
    result = command("one.py", "two.py", "--input", str(path))
    assert result.exit_code == 2
    assert why in said(result)


def test_a_file_of_tokens_is_compared_on(tmp_path, target):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(GOOD))
    assert command(target, f"{target}:other", "--input", str(path)).exit_code == 0


def test_a_process_of_its_own_changes_no_number(target):
    there, example = remote(target, Isolation()), EXAMPLES["small"]
    known = account(there)
    here = local(Reference(Choices(), components=("feed_forward", "generator")))
    assert known.components == ("feed_forward", "generator")
    assert known.choices == account(here).choices
    done = [recording(one, known.choices, known.components, example) for one in (there, here)]
    assert list(done[0]) == list(done[1])
    assert furthest(*done, example) == 0.0
