"""One way in: every interface takes the same targets, and answers alike where it cannot."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from click.testing import CliRunner, Result
from proof import share

import attentest
from attentest.interfaces.cli.main import main
from attentest.studies.cost import Plan
from attentest.targets.adapt import Unclear
from attentest_spec.registry import LoadFailure

torch.set_num_threads(1)

CODE = """
import math

from torch import nn


def attention(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1)
    return weights @ value, weights


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.outer(self.inner(x).relu())


instance = FeedForward(8, 16)


def unnamed(a, b, c):
    return attention(a, b, c)[0]
"""
LISTED = r"(\d+) of (\d+) judged clauses conform, of (\d+) in all"
COMMANDS = ("run", "check", "identify", "trace")


def command(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(main, list(words))


def run_pytest(target: str, folder: Path) -> str:
    """Return what pytest prints for the clauses on `target`.

    A process of its own: the fixture `pytester` would unload modules that later tests use.
    """
    (folder / "pytest.ini").write_text(f"[pytest]\nattentest_backend = {target}\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mine_of_a_user", file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@share(3)
@pytest.mark.parametrize("name", ["attention", "FeedForward", "instance"])
@pytest.mark.parametrize("word", ["identify", "trace"])
def test_command_takes_functions_classes_and_instances(file: Path, word: str, name: str) -> None:
    result = command(word, f"{file}:{name}")
    assert result.exit_code == 0, result.output


def test_run_judges_code_and_prints_how_it_is_read(file: Path) -> None:
    result = command("run", f"{file}:FeedForward", "--clause", "feed_forward.formula")
    assert result.exit_code == 0, result.output
    assert "understood: FeedForward(" in result.output
    said = " ".join(result.output.split())
    assert "1 of 1 judged clauses conform, of 1 in all (1 pass)" in said


@pytest.mark.proof
def test_compare_takes_code(file: Path) -> None:
    result = command("compare", f"{file}:FeedForward", f"{file}:instance")
    assert result.exit_code == 0, result.output


@share(6)
@pytest.mark.parametrize("word", [*COMMANDS, "compare", "cost", "learn", "pytest", "python"])
def test_question_about_code_is_the_same_everywhere(word: str, file: Path) -> None:
    target = f"{file}:unnamed"
    if word == "python":
        with pytest.raises(Unclear) as caught:
            attentest.identify(target)
        said = str(caught.value)
    elif word == "pytest":
        said = run_pytest(target, file.parent)
        assert "1 error" in said
    else:
        targets = (target, target) if word == "compare" else (target,)
        done = command(word, *targets)
        assert done.exit_code == 3, done.output
        said = done.output
    said = " ".join(said.split())
    assert "Nothing in the name 'unnamed' says which component it is" in said
    assert "--as COMPONENT" in said
    assert "`backend = attentest.adapted(..)`" in said


@pytest.mark.parametrize("word", COMMANDS)
def test_target_that_does_not_load_is_one_line(word: str, tmp_path: Path) -> None:
    result = command(word, f"{tmp_path}/nowhere.py")
    assert result.exit_code == 3, result.output
    assert len(result.output.strip().splitlines()) == 1, result.output
    assert "there is no file" in result.output


def test_target_that_does_not_load_has_no_column_beside_one_that_does(file: Path) -> None:
    words = ("--clause", "feed_forward.formula")
    result = command("run", f"{file}:FeedForward", f"{file}:nobody", *words)
    assert result.exit_code == 3, result.output
    assert "1 of 1 judged clauses conform" in result.output
    lines = [line for line in result.output.splitlines() if "nobody" in line]
    assert len(lines) == 1
    assert "nobody: not loaded: " in lines[0]
    assert re.search(r"feed_forward +1/1 *\n", result.output)


def test_file_with_a_backend_of_other_words_is_a_target(file: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text(
        "import attentest\nfrom mine import unnamed\n\nbackend = attentest.adapted(\n"
        '    unnamed, "attention", arguments={"query": "a", "key": "b", "value": "c"}\n)\n'
    )
    result = command("run", str(adapter), "--clause", "attention.formula")
    assert result.exit_code == 0, result.output
    assert "1 of 1 judged clauses conform" in result.output


def test_python_functions_take_live_objects(module: ModuleType) -> None:
    assert attentest.check(module.FeedForward, clauses=["feed_forward.formula"]).conforms
    assert attentest.identify(module.FeedForward)["activation"].measured == "relu"
    assert attentest.compare(module.FeedForward, module.instance).explained
    assert attentest.trace(module.FeedForward).parting.step == ""
    tiny = Plan(lengths=(4, 8), widths=(), repeat=1)
    assert not attentest.cost(module.attention, plan=tiny).failures
    with pytest.raises(LoadFailure, match="unnamed"):
        attentest.learn(module.unnamed)


@pytest.mark.proof
def test_counts_agree_between_the_command_python_and_pytest(file: Path) -> None:
    target = f"{file}:FeedForward"
    said = [
        command("check", target).output,
        command("run", target).output,
        str(attentest.check(target)),
        run_pytest(target, file.parent),
    ]
    counts = [re.search(LISTED, text) for text in said]
    assert all(counts), said
    assert len({found.groups() for found in counts if found}) == 1, counts
