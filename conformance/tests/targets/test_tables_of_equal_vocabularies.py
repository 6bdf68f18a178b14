"""Whole models that tie their tables where both vocabularies have one size, and not where not."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

METHODS = (SUPPORT / "wild_models" / "by_methods.py").read_text(encoding="utf-8")
TIED = edited(
    METHODS,
    (
        """        nn.Embedding(src_vocab_len, d_model),
        nn.Embedding(tgt_vocab_len, d_model),
""",
        """        (table := nn.Embedding(src_vocab_len, d_model)),
        table if src_vocab_len == tgt_vocab_len else nn.Embedding(tgt_vocab_len, d_model),
""",
    ),
)
ALONE = ("x + self.cross_attention(x,", "self.cross_attention(x,")


@pytest.mark.proof
@pytest.mark.parametrize("edits", [(), (ALONE,)], ids=["right", "mistaken"])
def test_tables_that_equal_vocabularies_tie_are_tied(
    edits: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "build_transformer", edited(TIED, *edits))
    assert backend.choices["tying"] == "embeddings"
    assert not any("exported as one" in one for one in broken(backend, "model.tying"))
    assert bool(broken(backend, "model.formula")) == bool(edits)
