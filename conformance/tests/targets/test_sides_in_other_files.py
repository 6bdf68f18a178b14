"""Whole models that get their sides as objects, of classes in files that are not imported."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import broken, edited

import attentest
from attentest.targets.adapt import Unclear
from attentest_spec import Backend

WHOLE = (SUPPORT / "wild_models" / "composed.py").read_text(encoding="utf-8")


def in_files(folder: Path, whole: str = WHOLE, more: str = "") -> Backend:
    """Return the backend of the model in a folder with a file for each of its sides."""
    head = "import torch\nfrom torch import nn\n\n\n"
    rest, _, model = whole.partition("class Seq2SeqTransformer")
    layers, _, sides = rest.partition("class Encoder(")
    encoder, _, decoder = sides.partition("class Decoder(")
    (folder / "layers.py").write_text(layers)
    imports = f"from layers import *\n{head}"
    (folder / "encoder.py").write_text(f"{imports}class Encoder({encoder}")
    (folder / "decoder.py").write_text(f"{imports}class Decoder({decoder}{more}")
    file = folder / "model.py"
    file.write_text(f"{head}class Seq2SeqTransformer{model}")
    return attentest.adapted(f"{file}:Seq2SeqTransformer")


@pytest.mark.proof
def test_sides_are_found_in_the_files_around_that_of_the_model(tmp_path: Path) -> None:
    backend = in_files(tmp_path)
    assert not broken(backend, "model.formula")
    assert "import Encoder" in backend.written()  # type: ignore[attr-defined]


@pytest.mark.proof
def test_mistake_in_such_a_side_is_found(tmp_path: Path) -> None:
    wrong = edited(WHOLE, ("self.fc_k(", "self.fc_v("))
    assert broken(in_files(tmp_path, wrong), "model.formula", "model.step-by-step")


@pytest.mark.proof
def test_several_classes_of_a_side_are_a_question(tmp_path: Path) -> None:
    other = "\n\nclass TransformerDecoder(Decoder):\n    def extra(self):\n        return 1\n"
    with pytest.raises(Unclear, match="could not be built as a whole model"):
        in_files(tmp_path, more=other)
