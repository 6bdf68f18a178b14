"""Stacks of layers whose names hold the word of a part, as "PreLayerNormModel"."""

from pathlib import Path

import pytest
from folders import SUPPORT

from attentest.targets import file_modules
from attentest.targets.adapt.encoders.tokens import stack_of
from attentest.targets.adapt.reading import Reading

SOURCE = (SUPPORT / "wild_encoders" / "bert_like.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["PreLayerNormModel", "TextEmbeddingsModel"])
def test_class_with_layers_and_a_table_is_a_stack(name: str, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(SOURCE.replace("class BERT(", f"class {name}("), encoding="utf-8")
    found = stack_of(vars(file_modules.load(path))[name], Reading(), name)
    assert found is not None
    assert found.component == "encoder"


def test_class_of_layers_without_a_table_is_what_its_name_says(tmp_path: Path) -> None:
    text = SOURCE.replace("class BERT(", "class TextEmbeddingsModel(")
    path = tmp_path / "own.py"
    path.write_text(text.replace("nn.Embedding(", "nn.Linear("), encoding="utf-8")
    made = file_modules.load(path).TextEmbeddingsModel
    assert stack_of(made, Reading(), "TextEmbeddingsModel") is None
