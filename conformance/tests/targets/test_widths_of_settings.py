"""Settings of decoder-only models whose names of widths are not the usual ones."""

import re
from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted

from attentest.targets.adapt import Unclear

NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
TWO = re.sub(r"\bn_embd\b", "n_hidden", NANO).replace("    n_hidden: int = 768\n", "")
TWO = TWO.replace(
    "    n_head: int = 12\n", "    n_head: int\n    n_embed: int\n    n_hidden: int\n"
)
TABLES = re.compile(r"nn\.Embedding\(config\.(\w+), config\.n_hidden\)")
TWO = TABLES.sub(r"nn.Embedding(config.\1, config.n_embed)", TWO)
for one in ("block_size", "vocab_size", "n_layer"):
    TWO = re.sub(rf"    {one}: int = \d+", f"    {one}: int", TWO)


@pytest.mark.proof
@pytest.mark.parametrize("width", ["embd_size", "embd_dim", "embd"])
def test_a_width_of_the_embedding_is_that_of_the_model(width: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", re.sub(r"\bn_embd\b", width, NANO))
    assert f"{width}=sizes.d_model" in "\n".join(backend.understood)


@pytest.mark.proof
def test_a_width_of_the_layers_is_that_of_the_table_where_they_are_one(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", TWO)
    assert "n_embed=sizes.d_model, n_hidden=sizes.d_model" in "\n".join(backend.understood)
    assert any("n_hidden is the width of the layers" in one for one in backend.assumed)


def test_a_width_of_the_layers_with_a_wrong_matrix_is_no_pass(tmp_path: Path) -> None:
    wrong = TWO.replace("nn.Linear(4 * config.n_hidden, config.n_hidden", "nn.Linear(4, 4")
    with pytest.raises(Unclear, match="could not be"):
        adapted(tmp_path, "GPT", wrong)
