"""Whole models whose attention fills its masked scores with a number that hides nothing."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

MODEL = (SUPPORT / "wild_models" / "composed.py").read_text(encoding="utf-8")
NAME = "Seq2SeqTransformer"


@pytest.mark.proof
@pytest.mark.parametrize("number", ["-1e-12", "1e-9", "-0.5"])
def test_fill_that_hides_nothing_is_a_violation(number: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, NAME, edited(MODEL, ("mask == 0, -1e10", f"mask == 0, {number}")))
    assert broken(backend, "model.formula")
