"""Sines of positions in decoder-only models: those that begin behind rows of padding."""

from pathlib import Path

import pytest
from folders import SUPPORT

from attentest.targets import file_modules
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.inference import Inferred, infer
from attentest.targets.language_models.limits import limits_of

SOURCE = (SUPPORT / "wild_language_models" / "rearranged.py").read_text(encoding="utf-8")
ROWS = "torch.arange(longest)[:, None]"
FREQUENCIES = "torch.arange(0, width, 2) * (-math.log(10000.0) / width)"
INCLUSIVE = "torch.arange(width // 2) * (-math.log(10000.0) / (width // 2 - 1))"


TABLE = SOURCE[SOURCE.index("        table = torch") : SOURCE.index("        self.register_buffer")]
HALVES = "        table = torch.cat([angles.sin(), angles.cos()], 1)\n"


def with_rows_from(first: int) -> str:
    """Return the model whose first position gets the row `first` of its table of sines."""
    made = SOURCE.replace(ROWS, f"torch.arange({first}, longest + {first})[:, None]")
    return made.replace(FREQUENCIES, INCLUSIVE).replace(TABLE, HALVES)


def inferred(folder: Path, source: str) -> Inferred:
    """Return what the numbers of the model in `source` say."""
    path = folder / "own.py"
    path.write_text(source, encoding="utf-8")
    return infer(file_modules.load(path).LanguageModel, "LanguageModel", Reading())


@pytest.mark.proof
def test_table_that_begins_behind_two_rows_of_padding_is_read(tmp_path: Path) -> None:
    found = inferred(tmp_path, with_rows_from(2))
    assert found.choices["position_offset"] == 2.0
    assert found.choices["positional_encoding"] == "halves-inclusive"
    assert limits_of(found.building, found.call, found.inner, found.table).least_width == 4


def test_table_that_begins_at_one_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="no option of the specification gives its numbers"):
        inferred(tmp_path, with_rows_from(1))
