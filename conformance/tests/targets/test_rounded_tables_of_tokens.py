"""Decoder-only models whose tables have more rows than there are tokens, for speed."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from plain_gpt import PLAIN_GPT
from proof import share

from attentest.targets.adapt import Unclear

FORMULA = "language_model.formula"
WIDTHS = "super().__init__()\n        self.table"
ROUNDED = edited(
    PLAIN_GPT,
    (WIDTHS, f"{WIDTHS.replace('self.table', '')}ROWS\n        self.table"),
    ("Embedding(vocab_size", "Embedding(rows"),
    ("Linear(width, vocab_size)", "Linear(width, rows)"),
)
TIED = ("rows)\n", "rows, bias=False)\n        self.head.weight = self.table.weight\n")
WAYS = [
    ("rows = vocab_size + -vocab_size % 64", 64),
    ("rows = (vocab_size + 7) // 8 * 8", 8),
    ("rows = vocab_size if vocab_size % 128 == 0 else vocab_size + 128 - vocab_size % 128", 128),
]


@share(3, rest=1)
@pytest.mark.parametrize(("rows", "multiple"), WAYS)
def test_rows_beyond_the_tokens_are_left_out(rows: str, multiple: int, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", edited(ROUNDED, ("ROWS", rows)))
    said = "\n".join(backend.assumed)
    assert "rows of table.weight and head.weight and head.bias are as many" in said
    assert f"rounded up to a multiple of {multiple}:" in said
    assert not broken(backend, FORMULA)


@pytest.mark.proof
def test_tied_tables_are_cut_as_one(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", edited(ROUNDED, ("ROWS", WAYS[0][0]), TIED))
    assert not broken(backend, FORMULA, "language_model.tied-matrix")


@pytest.mark.proof
def test_mistakes_next_to_rounded_tables_are_no_pass(tmp_path: Path) -> None:
    source = edited(ROUNDED, ("ROWS", WAYS[0][0]))
    scale = " / q.shape[-1] ** 0.5"
    assert asked_or_broken(tmp_path, "GPT", source, scale, "", FORMULA)


@pytest.mark.parametrize(
    "rows", ["rows = vocab_size + 1", "rows = 2 * vocab_size", "rows = vocab_size + 64"]
)
def test_rows_of_another_rule_are_a_question(rows: str, tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="holds no table of 29 tokens"):
        adapted(tmp_path, "GPT", edited(ROUNDED, ("ROWS", rows)))
