"""Encoders whose constructors load a file of settings: what they look up by name is a size."""

import json
from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.constants.numbers_read import numbers_read
from attentest.targets.resolve import module_of

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

SOURCE = """
import json
from pathlib import Path

from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab_size, n_tags, settings=Path(__file__).parent / "settings.json"):
        super().__init__()
        with open(settings) as file:
            settings = json.load(file)["model"]
        width = settings["d_model"]
        self.embedding = nn.Embedding(vocab_size, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(
            width, settings["n_heads"], settings["d_ff"], batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, settings["n_layers"])
        self.out = nn.Linear(width, n_tags)

    def forward(self, ids):
        return self.out(self.encoder(self.embedding(ids), src_key_padding_mask=ids == 0))
"""
CLAUSES = "encoder.formula", "encoder.depth-counts"


def _written(folder: Path) -> Path:
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 3, "d_ff": 128}
    (folder / "settings.json").write_text(json.dumps({"model": sizes}))
    return folder


def test_sizes_that_a_constructor_loads_are_judged_at_others(tmp_path: Path) -> None:
    assert not broken(adapted(_written(tmp_path), "Tagger", SOURCE), *CLAUSES)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("ids == 0", "ids != 0"),
        ("width, settings", "2 * width, settings"),
        ("batch_first=True", ""),
    ],
)
def test_mistakes_around_loaded_sizes_are_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(_written(tmp_path), "Tagger", SOURCE, right, wrong, *CLAUSES)


def test_keys_of_no_numbers_are_no_sizes(tmp_path: Path) -> None:
    own = _written(tmp_path) / "own.py"
    own.write_text(edited(SOURCE, ('settings["n_layers"]', '2 if settings["kind"] else 3')))
    tagger = vars(module_of(f"{own}:Tagger"))["Tagger"]
    assert {*numbers_read(tagger)} == {"d_model", "n_heads", "d_ff"}


def test_settings_that_a_script_loads_are_no_sizes_of_a_class(tmp_path: Path) -> None:
    own = _written(tmp_path) / "own.py"
    script = "\n\ndef main():\n    settings = json.load(open('settings.json'))['n_heads']\n"
    own.write_text(edited(SOURCE, ('settings["n_heads"]', "4")) + script)
    tagger = vars(module_of(f"{own}:Tagger"))["Tagger"]
    assert {*numbers_read(tagger)} == {"d_model", "n_layers", "d_ff"}
