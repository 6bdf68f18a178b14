"""Decoder-only models that hold their cache themselves, and take the number of tokens before."""

from pathlib import Path

import pytest
from folders import SUPPORT

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.reading import Unclear
from attentest.targets.whole import AdaptedWhole

SOURCE = (SUPPORT / "wild_language_models" / "start_pos.py").read_text()
TURNED = "freqs = freqs[start_pos : start_pos + t]"
KEPT = "self.cache_v[:b, start_pos : start_pos + t] = v.detach()"


def test_a_cache_in_the_model_is_read_by_its_steps(tmp_path: Path) -> None:
    backend = _adapted(tmp_path, SOURCE)
    said = "\n".join(backend.understood)
    assert "continued: cache held by the model itself, tokens before=start_pos" in said
    assert backend.choices["cache_sessions"] == "one"


@pytest.mark.proof
def test_a_cache_in_the_model_is_judged(tmp_path: Path) -> None:
    bench = Bench.for_status(_adapted(tmp_path, SOURCE))
    found = [judge(bench, f"language_model.cached-{one}") for one in ("formula", "chunks", "reset")]
    assert all(one.status.judged and not one.status.fails_run for one in found)


@pytest.mark.proof
def test_positions_that_begin_again_are_a_known_mistake(tmp_path: Path) -> None:
    backend = _adapted(tmp_path, _changed(TURNED, "freqs = freqs[:t]"))
    assert judge(Bench.for_status(backend), "language_model.cached-formula").status.fails_run


@pytest.mark.proof
def test_a_cache_that_is_written_elsewhere_is_a_question(tmp_path: Path) -> None:
    wrong = _changed(KEPT, "self.cache_v[:b, :t] = v.detach()")
    with pytest.raises(Unclear, match=r"holds its cache itself .* not that of the whole text"):
        _adapted(tmp_path, wrong)


def test_the_option_of_the_question_judges_without_the_cache(tmp_path: Path) -> None:
    wrong = _changed(KEPT, "self.cache_v[:b, :t] = v.detach()")
    assert _adapted(tmp_path, wrong, given={"start_pos": 0}).name


def test_a_cache_that_is_held_and_not_read_is_a_question(tmp_path: Path) -> None:
    wrong = _changed("if start_pos == 0:", "if True:")
    with pytest.raises(Unclear, match=r"holds layers\.0\.attention\.cache_k from one call"):
        _adapted(tmp_path, wrong)


@pytest.mark.proof
def test_a_number_of_tokens_before_without_a_cache_is_said(tmp_path: Path) -> None:
    without = _changed("if start_pos == 0:", "if True:").replace("= k.detach()", "= 0")
    backend = _adapted(tmp_path, without.replace("= v.detach()", "= 0"))
    assert any("start_pos is given as 0" in one for one in backend.assumed)


def _changed(old: str, new: str) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new)


def _adapted(folder: Path, source: str, **options: object) -> AdaptedWhole:
    (folder / "held.py").write_text(source)
    backend = attentest.adapted(f"{folder / 'held.py'}:Transformer", **options)
    assert isinstance(backend, AdaptedWhole)
    return backend


@pytest.mark.proof
def test_tokens_beyond_a_cache_that_drops_them_are_an_assumption(tmp_path: Path) -> None:
    backend = _adapted(tmp_path, SOURCE)
    assert any("given no more tokens than it is made for" in one for one in backend.assumed)
    verdict = judge(Bench.for_status(backend), "language_model.cached-beyond-length")
    assert not verdict.status.fails_run
