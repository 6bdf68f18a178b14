"""Tables of a new model that hold the factor of embeddings already."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

FLAT = (SUPPORT / "wild_models" / "flat.py").read_text(encoding="utf-8")
TABLES = "        self.trg_word_emb = nn.Embedding(n_trg_vocab, d_model)\n"


@pytest.mark.proof
@pytest.mark.parametrize(("factor", "wrong"), [("d_model**0.5", False), ("d_model**2", True)])
def test_tables_that_hold_the_root_of_the_width_are_as_large_as_they_may_be(
    factor: str, wrong: bool, tmp_path: Path
) -> None:
    scaled = f"{TABLES}        self.src_word_emb.weight.data *= {factor}\n"
    code = edited(
        FLAT,
        (TABLES, scaled),
        ("self.src_word_emb(src_seq) * self.d_model**0.5", "self.src_word_emb(src_seq)"),
    )
    backend = adapted(tmp_path, "Transformer", code)
    assert bool(broken(backend, "model.finite-at-birth")) is wrong
