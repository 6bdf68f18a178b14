"""Constructors that hand their keywords on to the class of a part."""

from pathlib import Path

from attentest.targets import file_modules
from attentest.targets.adapt.construction import construction
from attentest.targets.adapt.reading import Reading
from attentest.targets.signatures import constructor_arguments

SOURCE = """
from torch import nn


class Layers(nn.Module):
    def __init__(self, width, *, depth, heads, inner=20):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, heads * inner) for _ in range(depth))


class Text(nn.Module):
    def __init__(self, width, *, num_tokens, **kwargs):
        super().__init__()
        self.tokens = nn.Embedding(num_tokens, width)
        self.layers = Layers(width, inner=4 * width, **kwargs)
"""


def test_keywords_that_are_handed_to_a_part_are_arguments(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(SOURCE, encoding="utf-8")
    made = file_modules.load(path).Text
    assert list(constructor_arguments(made)) == ["depth", "heads", "width", "num_tokens"]
    assert {"layers", "heads"} <= construction(made, "encoder", Reading()).known


def test_keywords_that_go_elsewhere_are_none(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(SOURCE.replace("4 * width, **kwargs", "4 * width"), encoding="utf-8")
    assert list(constructor_arguments(file_modules.load(path).Text)) == ["width", "num_tokens"]
