"""Models whose vocabularies are the lengths of tables of words in another file."""

import ast
from pathlib import Path

import pytest
from test_size_constants import SIZES, assumed, failing, written

import attentest
from attentest.targets.constants.source import Constants

WORDS = """\
d_model = 512
d_ff = 2048
d_k = d_v = 64
n_layers, n_heads = 6, 8
source_words = {"P": 0, "S": 1, "E": 2, "ein": 3, "bier": 4}
target_words = {"P": 0, "S": 1, "E": 2, "a": 3, "beer": 4, "coke": 5}
src_vocab_size = len(source_words)
tgt_vocab_size = len(target_words)
max_len = 100
dropout = 0.1
batch_size = 32
"""


def test_numbers_of_words_are_no_settings():
    found: dict[str, object] = {}
    tree = ast.parse('words = {"P": 0, "S": 1, "E": 2}\nsettings = {"E": 64, "heads": 8, "L": 2}\n')
    Constants({}, found).visit(tree)
    assert found == {"E": 64, "heads": 8, "L": 2}


@pytest.mark.proof
def test_lengths_of_word_tables_of_another_file_are_sizes(tmp_path: Path):
    (tmp_path / "words.py").write_text(WORDS, encoding="utf-8")
    name = written(tmp_path, "constants.py", (SIZES, "from words import *\n"))
    backend = attentest.adapted(name)
    said = assumed(backend)
    assert "src_vocab_size=sizes.source_vocabulary" in said
    assert "tgt_vocab_size=sizes.target_vocabulary" in said
    assert "E=sizes" not in said
    assert failing(backend) == []


@pytest.mark.proof
def test_vocabularies_that_are_exchanged_are_no_reading(tmp_path: Path):
    (tmp_path / "words.py").write_text(WORDS, encoding="utf-8")
    exchanged = ("nn.Embedding(src_vocab_size", "nn.Embedding(tgt_vocab_size")
    name = written(tmp_path, "constants.py", (SIZES, "from words import *\n"), exchanged)
    with pytest.raises(Exception, match=r"could not be|vocabular|table"):
        attentest.adapted(name)
