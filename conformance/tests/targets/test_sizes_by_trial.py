"""Whole models whose names say no vocabulary, and those with a part that has a width by default."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken, edited
from torch import nn

from attentest.targets.adapt import Unclear
from attentest.targets.models.tables.vocabularies import with_vocabularies
from attentest.targets.models.trials import Building, trial

PLAIN = (SUPPORT / "wild_models" / "one_file.py").read_text(encoding="utf-8")
WIDTHS = edited(
    PLAIN,
    ("src_vocab", "d_input"),
    ("tgt_vocab", "d_output"),
    ("hidden_size=128", "d_model=128"),
    ("hidden_size", "d_model"),
)
BY_DEFAULT = edited(
    PLAIN,
    ("AddNorm(hidden, drop)", "AddNorm(drop)"),
    ("def __init__(self, hidden, drop):\n        super().__init__()\n        self.ln", "{}"),
    ("{}", "def __init__(self, drop, hidden=128):\n        super().__init__()\n        self.ln"),
)
SCALE = (" / math.sqrt(hidden // self.heads)", "")


def test_widths_are_tried_as_vocabularies_where_no_table_is_one() -> None:
    failure = "it holds no table of 23 tokens by 20"
    built = "M(d_output=sizes.d_model, d_input=sizes.d_model, w_input=sizes.d_model)"
    first, *_ = with_vocabularies(built, failure)
    assert first.startswith("M(d_output=sizes.target_vocabulary, d_input=sizes.source_vocabulary")
    built = "M(d_input=sizes.d_model, d_model=sizes.d_model, d_output=sizes.d_model)"
    first, *_ = with_vocabularies(built, failure)
    said = "M(d_input=sizes.source_vocabulary, d_model=sizes.d_model, d_output="
    assert first == f"{said}sizes.target_vocabulary)"
    assert not list(with_vocabularies("M(vocab=sizes.source_vocabulary)", failure))


@pytest.mark.proof
def test_model_with_vocabularies_named_as_widths_is_judged(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "TransformerMT", WIDTHS), "model.formula")
    assert asked_or_broken(tmp_path, "TransformerMT", WIDTHS, *SCALE, "model.formula")


@pytest.mark.proof
def test_width_that_a_part_has_by_default_is_said_and_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TransformerMT", BY_DEFAULT)
    said = "assumed that hidden=128, with which a part of TransformerMT is built"
    assert any(said in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula")
    assert asked_or_broken(tmp_path, "TransformerMT", BY_DEFAULT, *SCALE, "model.formula")


@pytest.mark.proof
def test_width_by_default_stays_a_question_under_strict(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="128"):
        adapted(tmp_path, "TransformerMT", BY_DEFAULT, strict=True)


@pytest.mark.proof
def test_width_that_is_given_as_a_length_is_a_question(tmp_path: Path) -> None:
    wrong = edited(
        BY_DEFAULT,
        ("self.src_pos = nn.Embedding(max_length,", "self.src_pos = nn.Embedding(hidden_size,"),
        ("self.tgt_pos = nn.Embedding(max_length,", "self.tgt_pos = nn.Embedding(hidden_size,"),
        ("        max_length=100,\n", ""),
    )
    with pytest.raises(Unclear):
        adapted(tmp_path, "TransformerMT", wrong)


def test_matrix_with_biases_of_another_size_is_none_that_is_meant() -> None:
    class Shared(nn.Module):
        def __init__(self, rows: int, width: int, target_rows: int = 5000) -> None:
            super().__init__()
            self.table = nn.Embedding(rows, width)
            self.head = nn.Linear(width, target_rows)
            self.head.weight = self.table.weight

    plain = "Shared(sizes.source_vocabulary, sizes.d_model)"
    assert "another number of rows than its biases" in trial(Building(plain, {"Shared": Shared}))
    same = "Shared(sizes.source_vocabulary, sizes.d_model, sizes.source_vocabulary)"
    assert not trial(Building(same, {"Shared": Shared}))


def test_code_that_ends_the_process_is_no_way_to_build_a_model() -> None:
    def made() -> nn.Module:
        raise SystemExit(2)

    assert "SystemExit" in trial(Building("made()", {"made": made}))
