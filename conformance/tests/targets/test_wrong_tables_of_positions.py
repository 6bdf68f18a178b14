"""Whole models with a wrong table of positions: its line, and choices that are none of its own."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

METHODS = (SUPPORT / "wild_models" / "by_methods.py").read_text(encoding="utf-8")
UNSCALED = edited(
    METHODS,
    (" * math.sqrt(self.src_embed.embedding_dim)", ""),
    (" * math.sqrt(self.tgt_embed.embedding_dim)", ""),
)
SINES = ("(steps / rates[: width // 2]).cos()", "(steps / rates[: width // 2]).sin()")


@pytest.mark.proof
def test_scale_of_embeddings_beside_a_wrong_table_is_measured(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "build_transformer", edited(UNSCALED, SINES))
    assert backend.choices["embedding_scale"] == "none"
    assert backend.choices.get("positional_encoding", "interleaved") == "interleaved"
    (message,) = broken(backend, "model.formula")
    assert message


@pytest.mark.proof
def test_model_without_positions_is_read_as_that(tmp_path: Path) -> None:
    without = edited(UNSCALED, ("x + self.table[: x.size(1)].to(x.dtype)", "x"))
    backend = adapted(tmp_path, "build_transformer", without)
    assert backend.choices["positional_encoding"] == "none"
