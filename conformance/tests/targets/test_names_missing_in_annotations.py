"""Classes whose annotations name what a statement that failed would define."""

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.definitions import UNDEFINED
from attentest.targets.file_modules import load

CODE = """
from dataclasses import dataclass

from torch import nn

text = open("no_such_file.txt").read()


@dataclass
class Settings:
    letters: int = len(text)


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, settings: Settings | None = None):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""
CLAUSE = "feed_forward.formula"


def test_class_is_defined_where_annotations_alone_lack_a_name(tmp_path):
    assert broken(adapted(tmp_path, "FeedForward", CODE), CLAUSE) == []


def test_mistake_in_such_a_class_is_reported(tmp_path):
    wrong = edited(CODE, ("self.up(x).relu()", "self.up(x)"))
    assert broken(adapted(tmp_path, "FeedForward", wrong), CLAUSE)


def test_class_that_needs_the_missing_name_is_not_defined(tmp_path):
    used = edited(CODE, ("settings: Settings | None = None", "settings=Settings()"))
    with pytest.raises(Exception, match=r"no_such_file|Settings|FeedForward"):
        adapted(tmp_path, "FeedForward", used)


LIBRARIES = """
import no_such_lightning as L
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())


class GPT(L.LightningModule):
    pass
"""


@pytest.mark.parametrize("base", ["L.LightningModule", "L.GPT2PreTrainedModel"])
def test_model_whose_base_cannot_be_imported_is_listed_as_not_defined(tmp_path, base):
    file = tmp_path / "own.py"
    file.write_text(edited(LIBRARIES, ("L.LightningModule", base)))
    assert "GPT" in vars(load(file))[UNDEFINED]


def test_data_of_a_library_that_cannot_be_imported_are_no_model(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(edited(LIBRARIES, ("L.LightningModule", "L.LightningDataModule")))
    assert "GPT" not in vars(load(file))[UNDEFINED]
