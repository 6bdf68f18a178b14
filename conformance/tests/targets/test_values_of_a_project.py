"""Encoders with arguments and fields that no name says, which other files of the project give."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets import file_modules
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.objects.literals import literals_near

CODE = """
import torch
from torch import nn


class TextEncoder(nn.Module):
    def __init__(self, config, nodes):
        super().__init__()
        width = config["d_model"]
        self.config = config
        self.words = nn.Embedding(nodes + config["extra"], width)
        if config["learnt_places"]:
            self.places = nn.Embedding(config["max_len"], width)
        layer = nn.TransformerEncoderLayer(
            width, config["heads"], config["d_ff"], config["dropout"], batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, config["layers"], enable_nested_tensor=False)
        self.out = nn.Linear(width, config["moods"])

    def forward(self, ids):
        x = self.words(ids)
        if self.config["learnt_places"]:
            x = x + self.places(torch.arange(ids.shape[1]))
        return self.out(self.layers(x, src_key_padding_mask=ids == 0)[:, 0])
"""
SCRIPT = """
CONFIG = {"learnt_places": True, "extra": 2, "d_model": 64}
"""
CLAUSES = ("encoder.formula", "encoder.padding-invariance")


@pytest.mark.proof
def test_encoder_is_judged_with_values_that_its_project_gives(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    backend: Any = adapted(tmp_path, "TextEncoder", CODE)
    said = "\n".join(backend.assumed)
    assert "learnt_places is True" in said
    assert "nodes is the size of the vocabulary" in said
    assert "positional_encoding=learned" in "\n".join(backend.understood)
    assert broken(backend, *CLAUSES) == []
    wrong = "src_key_padding_mask=ids != 0"
    right = "src_key_padding_mask=ids == 0"
    assert asked_or_broken(tmp_path, "TextEncoder", CODE, right, wrong, *CLAUSES)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("config = {'learnt_places': False}", {"learnt_places": False}),
        ("p.add_argument('--learnt-places', action='store_true')", {"learnt_places": False}),
        ("p.add_argument('--learnt_places', type=bool, default=True)", {"learnt_places": True}),
        ("learnt_places: bool = True\n", {"learnt_places": True}),
        ("run(learnt_places=True)\nrun(learnt_places=False)\n", {}),
        ("run(learnt_places=other)\nunlearnt_places = True", {}),
    ],
)
def test_value_is_that_which_a_project_gives_once(
    text: str, value: dict[str, bool], tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(CODE)
    (tmp_path / "train.py").write_text(text)
    thing = file_modules.load(tmp_path / "own.py").TextEncoder
    assert literals_near(thing, ["learnt_places"]) == value


def test_strict_reading_takes_no_values_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    with pytest.raises(Unclear):
        adapted(tmp_path, "TextEncoder", CODE, component="encoder", strict=True)
