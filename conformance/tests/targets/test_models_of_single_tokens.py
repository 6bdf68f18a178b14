"""Decoder-only models that refuse a whole text: their caller gives them one token at a time."""

from pathlib import Path

import pytest
from folders import SUPPORT

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.reading import Unclear
from attentest.targets.whole import AdaptedWhole

LENGTH = "t = tokens.shape[1]\n"
SOURCE = (SUPPORT / "wild_language_models" / "start_pos.py").read_text()
SOURCE = SOURCE.replace(LENGTH, f'{LENGTH}        assert t == 1, "one token at a time"\n', 1)
REQUIRED = (" = 0):\n        t =", "):\n        self.missing()\n        t =")
STEPS = "read as a decoder-only model, and no option of the specification gives its numbers"


@pytest.mark.proof
def test_a_model_that_takes_one_token_at_a_time_is_read_by_its_steps(tmp_path: Path) -> None:
    backend = _adapted(tmp_path)
    said = "\n".join(backend.understood)
    assert "arguments: tokens one at a time, tokens before=start_pos" in said
    assert any("no more of them than it is built for" in one for one in backend.assumed)


@pytest.mark.proof
def test_a_model_that_takes_one_token_at_a_time_is_judged(tmp_path: Path) -> None:
    bench = Bench.for_status(_adapted(tmp_path))
    for clause in ("formula", "causality", "shapes"):
        found = judge(bench, f"language_model.{clause}")
        assert not found.status.fails_run, found
    assert judge(bench, "language_model.formula").status.judged


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [
        ("h = x + self.attention", "h = self.attention", "h = self.attention"),
        ("return h + self.feed_forward", "return self.feed_forward", "return self.feed_forward"),
    ],
)
def test_a_mistake_in_the_steps_is_one_of_the_model(
    tmp_path: Path, right: str, wrong: str, line: str
) -> None:
    backend = _adapted(tmp_path, right, wrong)
    assert judge(Bench.for_status(backend), "language_model.formula").status.fails_run
    assert backend.mistaken is not None
    assert line in backend.mistaken.code


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.cache_v[:b, start_pos : start_pos + t] = v", "self.cache_v[:b, :t] = v"),
        (
            "values = self.cache_v[:b, : start_pos + t]",
            "values = self.cache_k[:b, : start_pos + t]",
        ),
    ],
)
def test_a_mistake_of_the_cache_is_no_pass(tmp_path: Path, right: str, wrong: str) -> None:
    with pytest.raises(Unclear, match=STEPS):
        _adapted(tmp_path, right, wrong)


def test_positions_that_begin_anew_in_each_step_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="positions begin anew in each step"):
        _adapted(tmp_path, "freqs = freqs[start_pos : start_pos + t]", "freqs = freqs[:t]")


def test_the_question_of_a_first_step_that_raises_is_that_of_the_step(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"One token alone, with start_pos=0, raised Attri"):
        _adapted(tmp_path, *REQUIRED)


def _adapted(folder: Path, right: str = "", wrong: str = "") -> AdaptedWhole:
    assert right in SOURCE
    path = folder / "own.py"
    path.write_text(SOURCE.replace(right, wrong) if right else SOURCE, encoding="utf-8")
    made = attentest.adapted(f"{path}:Transformer")
    assert isinstance(made, AdaptedWhole)
    return made
