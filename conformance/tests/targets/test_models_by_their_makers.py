"""Classes of whole models that take their parts: the function that builds one is looked for."""

from pathlib import Path
from typing import Any

import pytest
from folders import SUPPORT

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear
from attentest.targets.members import members

SOUND = (SUPPORT / "wild_models" / "annotated.py").read_text()
CLASSES, _, MAKER = SOUND.partition("def make_model(")


def read(folder: Path, classes: str, *makers: str) -> Any:
    """Read the class in a file whose function, or functions, are in files above its folder."""
    (folder / "model").mkdir()
    (folder / "model" / "classes.py").write_text(classes)
    for number, maker in enumerate(makers):
        head = "import copy\nfrom torch import nn\nfrom model.classes import *\n"
        (folder / f"make_{number}.py").write_text(f"{head}\n\ndef make_model({maker}")
    return attentest.adapted(str(folder / "model" / "classes.py:EncoderDecoder"))


@pytest.mark.exhaustive
def test_a_model_of_parts_is_built_by_the_function_of_another_file(tmp_path):
    backend = read(tmp_path, CLASSES, MAKER)
    said = "assumed that EncoderDecoder is built as make_model does, and judged as that"
    assert said in backend.assumed
    bench = Bench.for_status(backend, effort=0.1)
    assert judge(bench, "model.formula").status == "pass"


@pytest.mark.proof
def test_a_mistake_in_such_a_model_is_detected(tmp_path):
    wrong = CLASSES.replace("math.sqrt(self.d_k)", "self.d_k")
    assert wrong != CLASSES
    bench = Bench.for_status(read(tmp_path, wrong, MAKER), effort=0.1)
    assert judge(bench, "model.formula").status == "violation"


@pytest.mark.proof
def test_static_method_that_names_its_class_by_a_module_builds_the_model(tmp_path):
    body = "".join(f"    {line}\n" for line in f"def make_model({MAKER}".splitlines())
    made = f"from model import classes\n\n\nclass Makers:\n    @staticmethod\n{body}"
    made = made.replace("EncoderDecoder(", "classes.EncoderDecoder(")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "classes.py").write_text(CLASSES)
    head = "import copy\nfrom torch import nn\nfrom model.classes import *\n"
    (tmp_path / "makers.py").write_text(head + made)
    backend = attentest.adapted(str(tmp_path / "model" / "classes.py:EncoderDecoder"))
    said = "assumed that EncoderDecoder is built as Makers.make_model does, and judged as that"
    assert said in backend.assumed
    assert "Makers.make_model(" in backend.written()
    assert judge(Bench.for_status(backend, effort=0.1), "model.formula").status == "pass"


@pytest.mark.proof
def test_file_that_sets_up_its_messages_and_seeds_is_run(tmp_path):
    setup = "\n\nimport logging\nimport torch\nlogging.captureWarnings(False)\ntorch.manual_seed(0)"
    backend = read(tmp_path, CLASSES, MAKER + setup)
    assert any("is built as make_model does" in one for one in backend.assumed)


def test_function_of_a_script_builds_a_model_and_the_script_is_not_run(tmp_path):
    backend = read(tmp_path, CLASSES, f"{MAKER}\n\nopen({str(tmp_path / 'ran')!r}, 'w')")
    assert any("is built as make_model does" in one for one in backend.assumed)
    assert not (tmp_path / "ran").exists()
    assert "one.lineno not in" in backend.written()


def test_function_of_a_script_that_trains_its_model_is_not_called(tmp_path):
    """It is named, for the user to choose another one."""
    work = MAKER.replace("    return model", "    model.backward()\n    return model")
    with pytest.raises(Unclear, match=r"parts are handed to it.*make_0\.py:make_model"):
        read(tmp_path, CLASSES, f"{work}\n\nopen({str(tmp_path / 'ran')!r}, 'w')")
    assert not (tmp_path / "ran").exists()


@pytest.mark.proof
def test_function_beside_the_folder_of_a_class_builds_its_model(tmp_path, monkeypatch):
    """A read-me shows where the project begins, above the folder in which one works."""
    for folder in ("model", "tools"):
        (tmp_path / folder).mkdir()
    (tmp_path / "README.md").touch()
    (tmp_path / "model" / "classes.py").write_text(CLASSES)
    head = "import copy\nfrom torch import nn\nfrom model.classes import *\n"
    (tmp_path / "tools" / "make.py").write_text(f"{head}\n\ndef make_model({MAKER}")
    monkeypatch.chdir(tmp_path / "model")
    backend = attentest.adapted("classes.py:EncoderDecoder")
    assert any("is built as make_model does" in one for one in backend.assumed)
    (tmp_path / "README.md").unlink()
    with pytest.raises(Unclear, match="is not callable"):
        attentest.adapted("classes.py:EncoderDecoder")


def test_a_class_whose_parts_are_handed_to_it_is_asked_for_what_builds_it(tmp_path):
    path = tmp_path / "alone.py"
    path.write_text(CLASSES.partition("class Generator")[0])
    with pytest.raises(Unclear, match=r"could not be built as a whole model.* handed to it"):
        attentest.adapted(f"{path}:EncoderDecoder")


@pytest.mark.proof
def test_two_functions_that_build_a_model_are_one_question(tmp_path):
    with pytest.raises(Unclear, match=r"parts are handed .*make_0\.py:make_model.*make_1\.py"):
        read(tmp_path, CLASSES, MAKER, MAKER)


@pytest.mark.proof
def test_a_function_by_any_name_that_is_given_both_vocabularies_is_judged(tmp_path):
    path = tmp_path / "small.py"
    path.write_text(SOUND.replace("def make_model(", "def tiny("))
    found = {one.name: (one.component, one.inside) for one in members(str(path))}
    assert found["tiny"] == ("model", "")
    assert found["EncoderDecoder"] == ("", "tiny")


@pytest.mark.exhaustive
@pytest.mark.parametrize("divisor", ["math.sqrt(self.d_k)", "self.d_k"])
def test_a_function_by_any_name_is_judged_as_the_model(tmp_path, divisor):
    path = tmp_path / "small.py"
    made = SOUND.replace("def make_model(", "def tiny(").replace("math.sqrt(self.d_k)", divisor)
    path.write_text(made)
    bench = Bench.for_status(attentest.adapted(f"{path}:tiny"), effort=0.1)
    right = divisor.startswith("math")
    assert judge(bench, "model.formula").status == ("pass" if right else "violation")


@pytest.mark.proof
def test_a_name_for_no_annotation_is_no_class_of_settings(tmp_path):
    flat = (SUPPORT / "wild_models" / "flat.py").read_text()
    path = tmp_path / "flat.py"
    path.write_text(f"import inspect\n\n{flat}\n\nempty = inspect.Parameter.empty\n")
    backend = attentest.adapted(f"{path}:Transformer")
    assert not any("empty()" in one for one in backend.understood)


def test_class_of_words_that_cannot_be_made_is_a_question(tmp_path):
    path = tmp_path / "words.py"
    path.write_text(
        """
from torch import nn


class Vocabulary:
    def __init__(self, tokens):
        self.tokens = list(tokens)


class Model(nn.Module):
    def __init__(self, src, trg):
        super().__init__()
        self.src, self.trg = src, trg

    def forward(self, src, trg):
        return self.trg(trg)


def build_model(cfg: dict = None, src_vocab: Vocabulary = None, trg_vocab: Vocabulary = None):
    tables = [nn.Embedding(len(one.tokens), cfg["width"]) for one in (src_vocab, trg_vocab)]
    return Model(*tables)
"""
    )
    for name in ("Model", "build_model"):
        with pytest.raises(Unclear, match=f"{name} could not be built as a whole model"):
            attentest.adapted(f"{path}:{name}")


def test_class_with_encode_and_decode_alone_is_a_part_of_what_makes_it(tmp_path):
    path = tmp_path / "own.py"
    path.write_text((SUPPORT / "wild_models" / "by_methods.py").read_text())
    found = {one.name: (one.component, one.inside) for one in members(str(path))}
    assert found["build_transformer"] == ("model", "")
    assert found["Transformer"] == ("", "build_transformer")
