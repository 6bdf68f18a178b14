"""Whole models whose sizes are constants of their code: a copy of the files has others."""

import ast
from contextlib import suppress
from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.parameters import found
from attentest.targets.adapt.reading import Reading
from attentest.targets.constants import components, models
from attentest.targets.constants.copies import Constants
from attentest.targets.constants.numbers_read import numbers_of_file
from attentest.targets.file_modules import load
from attentest.targets.members import adapter_text, members
from attentest.targets.resolve import module_of
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Backend

WILD = SUPPORT / "wild_models"
SIZES = """\
d_model = 512
d_ff = 2048
d_k = d_v = 64
n_layers, n_heads = 6, 8
src_vocab_size = 1000
tgt_vocab_size = 1200
max_len = 100
dropout = 0.1
batch_size = 32
"""
BUSY = """\
start = time.process_time()
while time.process_time() < start + 0.3:
    pass
"""
CLAUSES = ("formula", "causality", "pickle")


def written(folder: Path, file: str, *edits: tuple[str, str]) -> str:
    """Write the model of `file` with `edits`, and return its name as a target."""
    source = (WILD / file).read_text(encoding="utf-8")
    for old, new in edits:
        assert old in source
        source = source.replace(old, new, 1)
    (folder / "model.py").write_text(source, encoding="utf-8")
    return f"{folder / 'model.py'}:Transformer"


def failing(backend: Backend) -> list[str]:
    """Return the clauses that the model breaks."""
    bench = Bench.for_status(backend, effort=0.1)
    statuses = {one: judge(bench, f"model.{one}").status for one in CLAUSES}
    return [one for one, status in statuses.items() if status is not Status.PASS]


def assumed(backend: Backend) -> str:
    """Return what is assumed of the model."""
    assert isinstance(backend, AdaptedWhole)
    return "\n".join(backend.assumed)


def test_constants_that_no_code_reads_are_no_sizes(tmp_path: Path) -> None:
    source = "head_size = 16\nwidth = 8\n\n\nclass Model:\n    size = width\n"
    (tmp_path / "own.py").write_text(source)
    assert numbers_of_file(load(tmp_path / "own.py").Model) == {"width": 8}


@pytest.mark.proof
def test_constants_of_a_neighbour_are_sizes(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(SIZES, encoding="utf-8")
    backend = attentest.adapted(
        written(tmp_path, "constants.py", (SIZES, "from settings import *\n"))
    )
    assert "n_layers=sizes.layers" in assumed(backend)
    assert failing(backend) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    "edits",
    [
        (),
        (
            ("d_ff, dropout, cross):", "d_ff, dropout, cross, heads=4):"),
            ("(d_model, 4, batch_first", "(d_model, heads, batch_first"),
            ("(d_model, 4, batch_first", "(d_model, heads, batch_first"),
        ),
    ],
)
def test_heads_that_are_fixed_are_a_size(
    tmp_path: Path, edits: tuple[tuple[str, str], ...]
) -> None:
    backend = attentest.adapted(written(tmp_path, "fixed_heads.py", *edits))
    assert backend.limits.heads is None
    assert failing(backend) == []


def test_parts_of_such_a_model_are_its_parts(tmp_path: Path) -> None:
    """The model is built of a copy of its file, whose classes are others of the same name."""
    file = written(tmp_path, "constants.py").partition(":")[0]
    inside = {one.name: one.inside for one in members(file) or ()}
    assert inside["Attention"] == inside["DecoderLayer"] == "Transformer"
    assert inside["Transformer"] == ""


def test_constants_are_read_wherever_they_have_names() -> None:
    source = """
class Settings:
    d_model: int = 512
    pads, n_heads = 0, 8
options = {"n_layers": 6}
parser.add_argument("--d-ff", type=int, default=2048)
def build(x, dropout=0.1, *, max_len=50):
    depth = 3
    self.h = 8
    nn.MultiheadAttention(x, 8)
    return Layer(width=7)
"""
    named: dict[str, float] = {}
    tree = Constants({"n_heads": 2, "max_len": 9, "nhead": 2}, named).visit(ast.parse(source))
    assert named == {
        "d_model": 512,
        "pads": 0,
        "n_heads": 8,
        "n_layers": 6,
        "d_ff": 2048,
        "dropout": 0.1,
        "max_len": 50,
        "h": 8,
        "nhead": 8,
        "width": 7,
    }
    text = ast.unparse(tree)
    assert "(0, 2)" in text
    assert "max_len=9" in text
    assert "MultiheadAttention(x, 2)" in text
    assert "self.h = 8" in text


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "edit",
    [
        ("np.sqrt(d_k)", "8.0"),  # sound at its own sizes alone
        pytest.param(("np.sqrt(d_k)", "np.sqrt(d_model)"), marks=pytest.mark.exhaustive),
        pytest.param((".transpose(1, 2).reshape(n", ".reshape(n"), marks=pytest.mark.exhaustive),
    ],
)
def test_numbers_that_no_choice_gives_are_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: tuple[str, str]
) -> None:
    monkeypatch.setattr(found, "SECONDS", 0.3)  # no map gives numbers that are wrong
    target = written(tmp_path, "constants.py", edit)
    with pytest.raises(Unclear, match=r"no choice gives its numbers.*first step that differs is"):
        attentest.adapted(target)


def test_constants_that_contradict_each_other_are_asked_about(tmp_path: Path) -> None:
    target = written(tmp_path, "constants.py", ("d_k = d_v = 64", "d_k = d_v = 32"))
    with pytest.raises(Unclear, match="d_k=32, and d_model=512 over n_heads=8 is another width"):
        attentest.adapted(target)


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    ("file", "edit"),
    [
        ("constants.py", (".triu(1)", ".triu(2)")),
        ("fixed_heads.py", ("key_padding_mask=memory_pad, ", "")),
    ],
)
def test_mistake_in_a_mask_is_detected(tmp_path: Path, file: str, edit: tuple[str, str]) -> None:
    """A constant with another meaning would explain wrong numbers too: it may be a question."""
    target = written(tmp_path, file, edit)
    with suppress(Unclear):
        assert failing(attentest.adapted(target))
    assert failing(attentest.adapted(target, anyway=True))


def test_heads_that_the_constant_does_not_set_are_asked_about(tmp_path: Path) -> None:
    fixed = ("(d_model, 4, batch_first", "(d_model, int('1'), batch_first")
    unused = ("class Layer", "n_heads = 4\n\n\nclass Layer")
    with pytest.raises(Unclear, match="whatever the constant is"):
        attentest.adapted(written(tmp_path, "fixed_heads.py", fixed, fixed, unused))


@pytest.mark.exhaustive
def test_constant_that_is_given_stays(tmp_path: Path) -> None:
    target = written(tmp_path, "constants.py")
    backend = attentest.adapted(target, given={"d_ff": 64})
    assert "d_ff=64" in assumed(backend)
    assert backend.limits.inner_width == 64


@pytest.mark.proof
def test_file_that_takes_long_to_run_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for reader in (components, models):
        monkeypatch.setattr(reader, "SECONDS", 0.2)
    slow = ("import torch\n", "import time\n\nimport torch\n\n" + BUSY)
    with pytest.raises(Unclear, match="could not be built"):
        attentest.adapted(written(tmp_path, "constants.py", slow))


@pytest.mark.exhaustive
def test_written_adapter_makes_the_copies_itself(tmp_path: Path) -> None:
    target = written(tmp_path, "constants.py")
    assert "d_k=sizes.d_model // sizes.heads" in assumed(attentest.adapted(target))
    text = adapter_text(target, {})
    assert "batch_size" not in text
    assert "from attentest." not in text
    file = tmp_path / "adapter.py"
    file.write_text(text, encoding="utf-8")
    assert failing(attentest.adapted(str(file))) == []


PARTS = """
from torch import nn

D_MODEL, N_HEADS, N_LAYERS, VOCAB_SIZE = 512, 8, 6, 1000


class Norm(nn.LayerNorm):
    pass


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([Norm(D_MODEL) for _ in range(3)])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(N_LAYERS)])
"""


def test_list_of_the_parts_of_a_layer_is_no_list_of_layers(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(PARTS)
    thing = module_of(str(tmp_path / "parts.py")).Transformer
    (values, *_) = models.size_constants(thing, Reading(), frozenset())
    assert "N_LAYERS=sizes.layers" in values
    assert Constants.listed not in values
