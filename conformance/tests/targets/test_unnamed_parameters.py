"""Whole models whose names say nothing about their parameters."""

import re
from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import broken

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.parameters import found

SOURCE = (SUPPORT / "wild_models" / "one_pad.py").read_text(encoding="utf-8")
NEUTRAL = {"tokeys": "a", "toqueries": "b", "tovalues": "c", "unifyheads": "d"}


def _neutral(folder: Path, right: str = "", wrong: str = "") -> str:
    """Write the model with neutral names of its projections, and return the target."""
    assert right in SOURCE
    source = SOURCE.replace(right, wrong) if right else SOURCE
    for own, other in NEUTRAL.items():
        source = re.sub(rf"\bself\.{own}\b", f"self.{other}", source)
    file = folder / "neutral.py"
    file.write_text(source)
    return f"{file}:Transformer"


@pytest.mark.proof
@pytest.mark.parametrize("seconds", [0.0, pytest.param(60.0, marks=pytest.mark.proof)])
def test_sound_model_is_read_or_asked_about_however_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr(found, "SECONDS", seconds)
    target = _neutral(tmp_path)
    if seconds:
        backend = attentest.adapted(target)
        assert "self_attention.query" in "\n".join(backend.understood)
        return
    with pytest.raises(Unclear, match="the time was up before all assignments were tried"):
        attentest.adapted(target)


@pytest.mark.proof
def test_a_mistake_with_such_names_is_a_violation_once_all_were_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = _neutral(tmp_path, "/ s**0.5", "")
    monkeypatch.setattr(found, "SECONDS", 60.0)
    assert broken(attentest.adapted(target), "model.formula")
    monkeypatch.setattr(found, "SECONDS", 0.0)
    assert attentest.adapted(target, anyway=True).components
