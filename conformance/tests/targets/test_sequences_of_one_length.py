"""Whole models that take sequences of their greatest length alone, as padding makes them."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken

import attentest
from attentest.targets.adapt import Unclear

OWN = (SUPPORT / "wild_models" / "one_pad.py").read_text(encoding="utf-8")
CODE = OWN.replace(".weight[: src.size(1)]", ".weight").replace(".weight[:t]", ".weight")
VISIBLE = ("x = block(x, narrow)", "x = block(x, torch.ones_like(narrow))")


@pytest.mark.proof
def test_models_of_one_length_are_filled_with_padding_and_conform(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Transformer", CODE)
    said = "assumed that sequences of the greatest length alone are meant"
    assert said in "\n".join(backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula", "model.causality", "model.parameter-gradient")
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), "model.formula")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        VISIBLE,
        (" * past", ""),
        ("y = block(y, own, x, wide)", "y = block(y, own, x, torch.ones_like(wide))"),
        (" / s**0.5", ""),
    ],
    ids=["source", "causal", "memory", "scale"],
)
def test_mistakes_in_models_of_one_length_are_detected(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "Transformer", CODE, right, wrong, "model.formula")


def test_models_of_one_length_that_see_their_padding_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="sequences of its greatest length alone"):
        adapted(tmp_path, "Transformer", CODE.replace(*VISIBLE))


def test_models_of_one_length_are_a_question_under_strict(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="sequences of its greatest length alone"):
        adapted(tmp_path, "Transformer", CODE, strict=True)
