"""`attentest identify`, as a user types it."""

import pytest
from arrival import hurried
from click.testing import CliRunner, Result

from attentest.interfaces.cli.main import main
from attentest_spec import CHOICES

TARGETS = """
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from dataclasses import replace
import os, time

honest = reference_backend(REFERENCE_MODELS["plain"], dict(norm_placement="pre"))
honest = replace(honest, recipes=dict(residual=honest.recipes["residual"]))
lying = replace(honest, choices=dict(norm_placement="post"))

def dies(x):
    print("a last word")
    os._exit(5)

def hangs(x):
    {announced}
    time.sleep(86400)
"""


def command(*words: str) -> Result:
    return CliRunner().invoke(main, ["identify", *words])


@pytest.fixture
def target(tmp_path, place):
    path = tmp_path / "some_targets.py"
    path.write_text(TARGETS.format(announced=place.code))
    return str(path)


def test_the_command_prints_one_row_a_choice_and_marks_what_differs(target):
    result = command(f"{target}:honest", "--component", "residual")
    assert result.exit_code == 0, result.output
    rows = {line[3:].split()[0]: line for line in result.output.splitlines() if line[3:].split()}
    assert set(CHOICES) <= set(rows)
    assert rows["norm_placement"].split() == ["*", "norm_placement", "pre", "pre", "post"]
    assert rows["tying"].startswith("?")


def test_the_command_says_what_is_not_as_declared_and_exits_with_1(target):
    result = command(f"{target}:lying")
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert "norm_placement is declared as post, and the numbers show pre" in said
    assert "NOT AS DECLARED" in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nobody-of-this-name",), 2, "There is no backend"),
        (("FILE:honest", "--component", "residuall"), 2, "did you mean residual"),
        (("FILE:honest", "--dtype", "float65"), 2, "float64"),
        (("FILE:nobody",), 3, "no object named 'nobody'"),
        (
            ("FILE:dies", "--as", "layer_norm"),
            1,
            "process ended with exit code 5 (a last word)",
        ),
        (("FILE:hangs", "--as", "layer_norm", "--timeout", "3600"), 1, "within 3600 seconds"),
    ],
)
def test_the_command_survives_its_target_and_its_user(words, code, said, target, place):
    with hurried(place, 3600.0):
        result = command(*(word.replace("FILE", target) for word in words))
    assert result.exit_code == code, result.output
    assert said in " ".join(result.output.split())
    assert "Traceback" not in result.output
