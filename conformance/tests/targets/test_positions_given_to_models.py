"""Whole models that take the positions of their tokens in addition to these."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

MODEL = edited(
    (SUPPORT / "wild_models" / "one_file.py").read_text(encoding="utf-8"),
    ("def forward(self, src, tgt):", "def forward(self, src, src_pos, tgt, tgt_pos):"),
    ("def encode(self, src, src_mask):", "def _encode(self, src, src_mask, where):"),
    (
        "def decode(self, tgt, memory, src_mask, tgt_mask):",
        "def _decode(self, tgt, memory, *rest):",
    ),
    (
        "y = self.embed(tgt, self.tgt_emb, self.tgt_pos)",
        "src_mask, tgt_mask, where = rest\n"
        "        y = self.embed(tgt, self.tgt_emb, self.tgt_pos, where)",
    ),
    (
        "x = self.embed(src, self.src_emb, self.src_pos)",
        "x = self.embed(src, self.src_emb, self.src_pos, where)",
    ),
    ("def embed(self, ids, tokens, positions):", "def embed(self, ids, tokens, positions, where):"),
    ("        where = torch.arange(ids.size(1), device=ids.device).expand_as(ids)\n", ""),
    (
        "self.decode(tgt, self.encode(src, src_mask), src_mask, tgt_mask)",
        "self._decode(tgt, self._encode(src, src_mask, src_pos), src_mask, tgt_mask, tgt_pos)",
    ),
)
FROM_ONE = MODEL.replace("nn.Embedding(max_length,", "nn.Embedding(max_length + 1,")
CLAUSES = ("model.formula", "model.padding-in-a-batch")


@pytest.mark.proof
@pytest.mark.parametrize(("source", "first"), [(MODEL, 0), (FROM_ONE, 1)])
def test_positions_that_a_call_takes_are_given(source: str, first: int, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TransformerMT", source)
    said = f"assumed that src_pos and tgt_pos are the positions of the tokens, counted from {first}"
    assert any(one.startswith(said) for one in backend.assumed)
    assert not broken(backend, *CLAUSES)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("positions(where)", "positions(where.flip(1))"),
        ("/ math.sqrt(hidden // self.heads)", ""),
    ],
)
@pytest.mark.proof
def test_positions_that_are_given_excuse_no_mistake(right: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="positions by their names"):
        adapted(tmp_path, "TransformerMT", edited(MODEL, (right, wrong)))


def test_positions_that_a_call_takes_are_a_strict_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "TransformerMT", MODEL, strict=True)
