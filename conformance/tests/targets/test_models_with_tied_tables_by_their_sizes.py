"""Whole models without a telling name, whose two vocabularies are those of one table."""

from pathlib import Path

from folders import SUPPORT
from mistaken_code import edited

from attentest.targets.members import members

FLAT = (SUPPORT / "wild_models" / "flat.py").read_text(encoding="utf-8")
UNNAMED = edited(
    FLAT,
    ("class Transformer(", "class AttentiveNetwork("),
    ("src_seq", "src_token_ids"),
    ("trg_seq", "trg_token_ids"),
    ("self.enc_stack", "self.first_stack"),
    ("self.dec_stack", "self.second_stack"),
)


def component_of(folder: Path, source: str) -> str:
    file = folder / "own.py"
    file.write_text(source)
    found = {one.name: one for one in members(str(file)) or []}
    return found["AttentiveNetwork"].component


def test_models_with_two_vocabularies_are_recognised_by_their_sizes(tmp_path: Path) -> None:
    assert component_of(tmp_path, UNNAMED) == "model"


def test_models_with_one_table_for_both_sides_are_recognised_too(tmp_path: Path) -> None:
    tied = "self.trg_word_emb = nn.Embedding(n_trg_vocab, d_model)"
    code = edited(UNNAMED, (tied, "self.trg_word_emb = self.src_word_emb"))
    assert component_of(tmp_path, code) == "model"
