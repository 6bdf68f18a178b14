"""Whole models whose tables of positions have as many rows as a vocabulary has tokens."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

ANNOTATED = (SUPPORT / "wild_models/annotated.py").read_text(encoding="utf-8")
OF_VOCABULARY = edited(
    ANNOTATED,
    (
        "position = PositionalEncoding(d_model, dropout)",
        "position = PositionalEncoding(d_model, dropout, min(src_vocab, tgt_vocab))",
    ),
)
SAID = "assumed that no sequence is longer than the vocabulary"


@pytest.mark.proof
def test_no_sequence_is_longer_than_a_vocabulary_whose_rows_positions_have(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "make_model", OF_VOCABULARY)
    assert any(one.startswith(SAID) for one in backend.assumed)
    assert not broken(backend, "model.formula", "model.padding-in-a-batch")


@pytest.mark.proof
def test_table_with_rows_of_its_own_is_no_vocabulary(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "make_model", edited(ANNOTATED, ("max_len=5000", "max_len=23")))
    assert not any(one.startswith(SAID) for one in backend.assumed)


@pytest.mark.proof
def test_rows_of_a_vocabulary_excuse_no_mistake(tmp_path: Path) -> None:
    mistaken = edited(OF_VOCABULARY, ("math.sqrt(self.d_k)", "self.d_k"))
    assert broken(adapted(tmp_path, "make_model", mistaken), "model.formula")
