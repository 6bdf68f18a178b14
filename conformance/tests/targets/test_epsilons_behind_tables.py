"""Epsilons of whole models whose tables of positions in single precision hide small differences."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken

SOUND = (SUPPORT / "wild_models" / "annotated.py").read_text(encoding="utf-8")
FROM_ONE = SOUND.replace(
    "torch.arange(max_len, dtype=torch.float64)", "torch.arange(1, max_len + 1)"
)
SINGLE = FROM_ONE.replace("2, dtype=torch.float64)", "2)")


@pytest.mark.proof
def test_closest_epsilon_is_taken_where_no_default_fits(tmp_path: Path) -> None:
    assert len({SOUND, FROM_ONE, SINGLE}) == 3
    backend = adapted(tmp_path, "make_model", SINGLE)
    assert dict(backend.choices)["position_offset"] == 1.0
    assert not broken(backend, "model.formula", "model.embedding-norm")


@pytest.mark.proof
def test_missing_residual_sum_is_still_found(tmp_path: Path) -> None:
    wrong = SINGLE.replace("return x + self.dropout(", "return self.dropout(")
    assert wrong != SINGLE
    backend = adapted(tmp_path, "make_model", wrong)
    assert broken(backend, "model.formula")
