"""Whole models whose vocabularies are counted in a file of data, which is not there."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import broken, edited

import attentest
from attentest.targets.adapt.reading import Reading
from attentest.targets.models.building import building
from attentest.targets.resolve import module_of

PLAIN = (SUPPORT / "wild_models" / "plain_ids.py").read_text(encoding="utf-8")
SIDES, _, MODEL = PLAIN.partition("class Translator(nn.Module):\n")
DATA = """
with open("no_such_file.txt") as file:
    words = file.read().split()
src_vocab_size, tgt_vocab_size = len(words), len(set(words))
"""
SIZES = "d_model, n_heads, d_ff, n_layers, max_len, dropout = 64, 4, 128, 2, 128, 0.1\n"
OWN = """
from data import tgt_vocab_size
from sides import *


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = Side(tgt_vocab_size, *rest, decodes=True)
        self.head = nn.Linear(d_model, tgt_vocab_size)
"""
ENCODER = """
from data import src_vocab_size
from sizes import *

rest = d_model, n_heads, d_ff, n_layers, max_len, dropout


class Encoder(Side):
    def __init__(self):
        super().__init__(src_vocab_size, *rest, decodes=False)
"""


def written(folder: Path, *edits: tuple[str, str]) -> str:
    """Write the files of the project; return the path of its model."""
    (folder / "data.py").write_text(DATA)
    (folder / "sizes.py").write_text(SIZES)
    (folder / "sides.py").write_text(edited(SIDES, *edits) + ENCODER)
    forward = "\n    def forward" + MODEL.partition("    def forward")[2]
    (folder / "own.py").write_text(OWN + forward)
    return str(folder / "own.py")


def test_sizes_that_other_files_import_from_missing_data_are_found(tmp_path: Path) -> None:
    model = module_of(written(tmp_path)).Translator
    known = building(model, "Translator", Reading()).known
    assert {"source_vocabulary", "target_vocabulary", "d_model", "heads", "layers"} <= known


@pytest.mark.proof
def test_model_of_missing_data_is_judged(tmp_path: Path) -> None:
    assert not broken(attentest.adapted(f"{written(tmp_path)}:Translator"), "model.formula")


@pytest.mark.proof
def test_mistake_in_the_decoder_of_such_a_model_is_detected(tmp_path: Path) -> None:
    wrong = ("memory_key_padding_mask=memory_ids == 0", "memory_key_padding_mask=memory_ids < 0")
    backend = attentest.adapted(f"{written(tmp_path, wrong)}:Translator")
    assert broken(backend, "model.formula", "model.padding-in-a-batch")
