"""Whole models whose constructors read a file of settings: its numbers are sizes."""

from pathlib import Path

import pytest
from mistaken_code import broken

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.constants.written import numbers_of_settings
from attentest.targets.file_modules import load
from attentest_spec import Backend

MODEL = """
import torch
from torch import nn

READ


class Rows(nn.Module):
    def __init__(self, words, places, width):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)

    def forward(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        held = settings()
        width = held["d_model"]
        sizes = width, held["n_heads"], held["d_ff"], held["dropout"]
        one = nn.TransformerEncoderLayer(*sizes, batch_first=True)
        other = nn.TransformerDecoderLayer(*sizes, batch_first=True)
        self.src_rows = Rows(held["src_vocab_size"], held["max_len"], width)
        self.tgt_rows = Rows(held["tgt_vocab_size"], held["max_len"], width)
        layers = held["n_layers"]
        self.encoder = nn.TransformerEncoder(one, layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(other, layers)
        self.out = nn.Linear(width, held["tgt_vocab_size"])

    def forward(self, src, tgt):
        hide = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()
        memory = self.encoder(self.src_rows(src), src_key_padding_mask=src == 0)
        return self.out(self.decoder(
            self.tgt_rows(tgt), memory, tgt_mask=hide, tgt_key_padding_mask=tgt == 0,
            memory_key_padding_mask=src == 0,
        ))
"""
YAML = """import yaml


def settings():
    with open("conf/model.yaml") as file:
        return yaml.safe_load(file)"""
JSON = """import json


def settings():
    with open("model.json") as file:
        return json.load(file)["model"]"""
NUMBERS = {
    "d_model": 64,
    "n_heads": 4,
    "d_ff": 128,
    "dropout": 0.1,
    "n_layers": 2,
    "src_vocab_size": 90,
    "tgt_vocab_size": 80,
    "max_len": 32,
}


def read(folder: Path, reading: str, *edit: str) -> Backend:
    """Read a model below a `folder` that holds its settings, with one of its lines changed."""
    (folder / "conf").mkdir()
    (folder / "net").mkdir()
    (folder / "README.md").touch()
    lines = "".join(f"{name}: {value}\n" for name, value in NUMBERS.items())
    (folder / "conf" / "model.yaml").write_text(lines)
    held = ", ".join(f'"{name}": {value}' for name, value in NUMBERS.items())
    (folder / "model.json").write_text(f'{{"model": {{{held}}}, "lr": 0.1}}')
    text = MODEL.replace("READ", reading)
    assert not edit or edit[0] in text
    file = folder / "net" / "own.py"
    file.write_text(text.replace(*edit) if edit else text)
    return attentest.adapted(f"{file}:Translator")


@pytest.mark.proof
@pytest.mark.parametrize("reading", [YAML, JSON])
def test_numbers_of_a_file_that_a_constructor_reads_are_sizes(tmp_path, reading, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    backend = read(tmp_path, reading)
    assert any("n_heads=sizes.heads" in one for one in backend.assumed)
    assert not broken(backend, "model.formula")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [(".triu(1)", ".triu(2)"), ("memory_key_padding_mask=src == 0,", ""), ('"n_heads"', '"two"')],
)
def test_mistake_in_a_model_with_a_file_of_settings_is_found(tmp_path, right, wrong):
    try:
        backend = read(tmp_path, YAML, right, wrong)
    except Unclear:
        return
    assert broken(backend, "model.formula")


def test_files_of_settings_that_no_code_in_use_reads_are_not_looked_at(tmp_path):
    (tmp_path / "model.json").write_text('{"d_model": 8, "hidden": 9}')
    (tmp_path / "train.py").write_text("import json\n")
    (tmp_path / "own.py").write_text("class Own:\n    pass\n")
    assert numbers_of_settings(load(tmp_path / "own.py").Own) == {}
    code = "import json\n\n\nclass Own:\n    def width(self, a):\n        return a['d_model']\n"
    (tmp_path / "own.py").write_text(code)
    assert numbers_of_settings(load(tmp_path / "own.py").Own) == {"d_model": 8}
