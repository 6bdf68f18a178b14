"""Methods of whole models: `encode` and `decode` that give what the call does, or say why not."""

import importlib.util
import sys
from pathlib import Path

import pytest
from folders import SUPPORT

from attentest.targets.adapt.reading import Reading
from attentest.targets.models import methods
from attentest.targets.models.building import building
from attentest.targets.models.inferring import Inferred, infer
from attentest.targets.models.methods import UNHIDDEN

MODEL = SUPPORT / "wild_models" / "one_file.py"

APART = """
    def decode(self, {arguments}):
        shown = torch.zeros(1, 1, 1, 1, dtype=torch.bool)
        return self.steps(tgt, memory, {mask}, tgt_mask)

    def steps(self, tgt, memory, src_mask, tgt_mask):"""


def inferred(arguments: str, mask: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Inferred:
    """Return how a model is called whose `decode` takes `arguments` and hides what `mask` says."""
    head = "\n    def decode(self, tgt, memory, src_mask, tgt_mask):"
    source = MODEL.read_text()
    assert head in source
    source = source.replace(head, APART.format(arguments=arguments, mask=mask))
    path = folder / "model_with_methods.py"
    path.write_text(source.replace("return self.decode(", "return self.steps("))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    built = building(module.TransformerMT, "TransformerMT", Reading())
    return infer(built, "TransformerMT", "", Reading())


ALL = "tgt, memory, src_mask, tgt_mask"


def test_decode_that_hides_what_the_call_hides_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = inferred(ALL, "src_mask", tmp_path, monkeypatch)
    assert set(found.methods) == {"encode", "decode"}
    assert not found.doubts


@pytest.mark.proof
def test_decode_that_hides_no_padding_is_an_assumption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "METHOD_SECONDS", 1.0)
    found = inferred("tgt, memory, tgt_mask", "shown", tmp_path, monkeypatch)
    assert not found.methods
    assert UNHIDDEN in found.doubts
