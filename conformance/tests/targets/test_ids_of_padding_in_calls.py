"""Whole models whose call takes one id of padding for both sides, and settings in groups."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

PLAIN = (SUPPORT / "wild_models" / "plain_ids.py").read_text(encoding="utf-8")
ONE_PAD = edited(
    PLAIN,
    ("def forward(self, ids, memory=None, memory_ids=None)", "def forward(self, ids, pad, *more)"),
    (
        "        hidden = ids == 0\n",
        "        hidden = ids == pad\n"
        "        memory, memory_ids = more if more else (None, None)\n",
    ),
    ("memory_key_padding_mask=memory_ids == 0", "memory_key_padding_mask=memory_ids == pad"),
    ("def forward(self, src_ids, tgt_ids)", "def forward(self, src_ids, tgt_ids, pad_id)"),
    ("self.encoder(src_ids)", "self.encoder(src_ids, pad_id)"),
    ("self.decoder(tgt_ids, memory, src_ids)", "self.decoder(tgt_ids, pad_id, memory, src_ids)"),
)
CLAUSES = ("model.formula", "model.pad-ids", "model.padding-in-a-batch")


@pytest.mark.proof
def test_one_id_of_padding_is_that_of_both_sides(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Translator", ONE_PAD)
    assert not backend.limits.own_pads
    assert not broken(backend, *CLAUSES)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("memory_ids == pad", "memory_ids == pad + 1"),
        ("hidden = ids == pad", "hidden = ids != pad"),
    ],
)
def test_mistakes_with_one_id_of_padding_are_detected(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert broken(adapted(tmp_path, "Translator", edited(ONE_PAD, (right, wrong))), *CLAUSES)


HEAD, _, TAIL = PLAIN.partition("class Translator(nn.Module):\n")
BODY = "        rest = d_model" + TAIL.partition("        rest = d_model")[2]
FIELDS = """class Translator(nn.Module):
    def __init__(self, config):
        super().__init__()
        model, data = config["model"], config["data"]
        src_vocab_size, tgt_vocab_size = data["src_vocab_size"], data["tgt_vocab_size"]
        d_model, n_heads, d_ff = model["d_model"], model["n_heads"], model["d_ff"]
        n_layers, max_len, dropout = model["n_layers"], model["max_len"], model["dropout"]
"""
GROUPS = HEAD + FIELDS + BODY


@pytest.mark.proof
def test_group_of_settings_that_is_called_model_is_no_width(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Translator", GROUPS)
    assert not broken(backend, CLAUSES[0])


@pytest.mark.proof
def test_field_that_is_called_model_may_be_the_width(tmp_path: Path) -> None:
    width = edited(GROUPS, ('model["d_model"]', 'config["hidden"]'), ('["max_len"]', '["max_len"]'))
    assert not broken(adapted(tmp_path, "Translator", width), CLAUSES[0])


TABLES = edited(
    PLAIN,
    ("        src_vocab_size,\n", "        src_embedding: nn.Embedding,\n"),
    ("        tgt_vocab_size,\n", "        tgt_embedding: nn.Embedding,\n        vocab_size,\n"),
    ("Side(src_vocab_size,", "Side(src_embedding,"),
    ("Side(tgt_vocab_size,", "Side(tgt_embedding,"),
    ("nn.Linear(d_model, tgt_vocab_size)", "nn.Linear(d_model, vocab_size)"),
    ("self.tokens = nn.Embedding(vocab, d_model)", "self.tokens = vocab"),
)


@pytest.mark.proof
def test_tables_that_are_handed_in_are_made(tmp_path: Path) -> None:
    edits = ("        vocab_size,\n", "        tgt_vocab_size,\n")
    source = edited(
        TABLES, edits, ("nn.Linear(d_model, vocab_size)", "nn.Linear(d_model, tgt_vocab_size)")
    )
    backend = adapted(tmp_path, "Translator", source)
    assert not broken(backend, CLAUSES[0])
    assert "torch.nn.Embedding(sizes.target_vocabulary, sizes.d_model)" in backend.written()  # type: ignore[attr-defined]
