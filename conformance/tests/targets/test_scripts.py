"""Scripts that train what they define, and files of which a statement fails."""

import subprocess
import sys
from pathlib import Path

import pytest
from mistaken_code import broken
from torch import nn

import attentest
from attentest.targets import definitions, file_modules, resolve
from attentest.targets.constants.source import numbers_of_calls
from attentest.targets.members import members
from attentest.targets.whole import AdaptedWhole
from attentest_spec.registry import LoadFailure

SCRIPT = """
import torch
from torch import nn

width, heads, layers, context = 48, 4, 3, 32
with open("words_that_are_nowhere.txt") as file:
    text = file.read()
letters = sorted(set(text))
vocab_size = len(letters)


class Attention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("seen", torch.tril(torch.ones(context, context)) == 1)

    def forward(self, x):
        b, t, d = x.shape
        split = self.qkv(x).view(b, t, 3, self.n_head, d // self.n_head)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (d // self.n_head) ** 0.5
        scores = scores.masked_fill(~self.seen[:t, :t], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.attention = Attention(n_embd, n_head)
        self.first, self.second = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.up, self.down = nn.Linear(n_embd, 4 * n_embd), nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(torch.relu(self.up(self.second(x))))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(BLOCKS)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, idx):
        x = self.tokens(idx) + self.places(torch.arange(idx.shape[1]))
        return self.head(self.norm(self.blocks(x)))


model = LanguageModel()
for step in range(10**9):
    loss = model(torch.randint(vocab_size, (8, context))).mean()
    loss.backward()
"""
CLAUSES = [f"language_model.{one}" for one in ("formula", "causality")]
SIZES = "width, heads, layers, context = 48, 4, 3, 32"
LISTS = {
    "counted": "*[Block(width, heads) for _ in range(layers)]",
    "literal": "*[Block(width, 4) for _ in range(3)]",
    "written out": "Block(width, 4), Block(width, 4), Block(width, 4)",
}


def written(folder: Path, blocks: str, *edits: tuple[str, str]) -> str:
    source = SCRIPT.replace("BLOCKS", LISTS[blocks])
    if blocks != "counted":
        source = source.replace(SIZES, "width, context = 48, 32")
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    (folder / "train.py").write_text(source, encoding="utf-8")
    return f"{folder / 'train.py'}:LanguageModel"


@pytest.mark.proof
@pytest.mark.parametrize("blocks", LISTS)
def test_script_of_training_is_judged_by_what_it_defines(tmp_path: Path, blocks: str) -> None:
    backend = attentest.adapted(written(tmp_path, blocks))
    assert isinstance(backend, AdaptedWhole)
    assumed = "\n".join(backend.assumed)
    assert "that of line 6 (FileNotFoundError" in assumed
    assert "sizes.layers" in assumed
    assert broken(backend, *CLAUSES) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    "edit",
    [
        ("torch.ones(context, context))", "torch.ones(context, context), 1)"),
        ("x = x + self.attention(", "x = self.attention("),
        (" / (d // self.n_head) ** 0.5", " * (d // self.n_head) ** 0.5"),
    ],
)
def test_mistake_in_script_is_found(tmp_path: Path, edit: tuple[str, str]) -> None:
    backend = attentest.adapted(written(tmp_path, "written out", edit))
    assert broken(backend, *CLAUSES[:1])


@pytest.mark.proof
def test_parts_of_copies_belong_to_their_model(tmp_path: Path) -> None:
    written(tmp_path, "literal")
    found = {one.name: one.inside for one in members(str(tmp_path / "train.py")) or ()}
    assert found == {"Attention": "LanguageModel", "Block": "LanguageModel", "LanguageModel": ""}


@pytest.mark.proof
def test_reproduction_leaves_out_what_fails(tmp_path: Path) -> None:
    written(tmp_path, "counted")
    text = resolve.loader(f"{tmp_path / 'train.py'}:Block")
    code = f"{text}\nprint(type(backend(48, 4)).__name__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "Block", ran.stderr


@pytest.mark.parametrize("place", ["from pieces.widths import", "from .widths import"])
def test_reproduction_of_a_file_that_fails_in_part_knows_its_package(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "pieces").mkdir()
    (tmp_path / "pieces" / "__init__.py").write_text("")
    (tmp_path / "pieces" / "widths.py").write_text("inner = 4\n")
    source = f"import library_that_is_nowhere\n{place} inner\nfrom torch import nn\n"
    source += "class Part(nn.Module):\n    width = inner\n"
    (tmp_path / "pieces" / "parts.py").write_text(source)
    text = resolve.loader(f"{tmp_path / 'pieces' / 'parts.py'}:Part")
    code = f"{text}\nprint(backend.width)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "4", ran.stderr


def test_file_without_modules_fails_as_before(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("def f():\n    return 1\n\n\nraise OSError('no disk')\n")
    with pytest.raises(LoadFailure, match="OSError: no disk"):
        resolve.module_of(str(tmp_path / "plain.py"))


def test_statements_after_a_failure_define_and_do_nothing_else(tmp_path: Path) -> None:
    source = """
import sys
import library_that_is_nowhere
from torch import nn
made = []
class Part(nn.Module):
    pass
def note():
    made.append(1)
    return 2
number = note()
plain = len("abc")
note()
sys.exit(2)
"""
    (tmp_path / "run.py").write_text(source)
    module = file_modules.load(tmp_path / "run.py")
    assert module.made == []
    assert module.plain == 3
    assert not hasattr(module, "number")
    said = definitions.left_out(module)
    assert "line 3 (ModuleNotFoundError" in said[0]
    assert "and 3 statements more" in said[0]


def test_numbers_of_calls_are_those_that_no_other_number_says(tmp_path: Path) -> None:
    source = """
from torch import nn
letters = "abcde"
vocab_size = len(letters)
n_embd = 32
inner = int(n_embd * 4)
name = str(3)
class Model(nn.Module):
    def forward(self, x):
        return x + n_layers + vocab_size
if __name__ == "__main__":
    n_layers = 4
"""
    (tmp_path / "sizes.py").write_text(source)
    found = numbers_of_calls(file_modules.load(tmp_path / "sizes.py"))
    assert found == {"vocab_size": 5, "n_layers": 64}


NEIGHBOUR = """
import library_that_is_nowhere
from torch import nn
class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, 7), nn.Linear(7, width)
    def forward(self, x):
        return self.second(self.first(x).relu())
class Logged(library_that_is_nowhere.Module):
    pass
"""
IMPORTING = """
from inner_parts.inner import Inner, Logged
from inner_parts.counting import count
from torch import nn
class FeedForward(Inner):
    pass
"""
COUNTING = """
from library_that_is_nowhere import table
def count(text):
    return table[text]
"""


def importing(folder: Path) -> Path:
    """Write a file whose neighbours import a library that is missing; return it."""
    (folder / "inner_parts").mkdir()
    (folder / "inner_parts" / "inner.py").write_text(NEIGHBOUR)
    (folder / "inner_parts" / "counting.py").write_text(COUNTING)
    (folder / "network.py").write_text(IMPORTING.replace(", Logged", ""))
    return folder / "network.py"


def test_neighbours_that_fail_in_part_keep_what_they_define(tmp_path: Path) -> None:
    module = file_modules.load(importing(tmp_path))
    assert issubclass(module.FeedForward, module.Inner)
    said = definitions.left_out(module)
    assert [one.partition("statements of ")[2][:11] for one in said] == [
        "inner.py th",
        "counting.py",
    ]
    assert "line 2 (ModuleNotFoundError" in said[0]


def test_names_that_a_neighbour_fails_to_define_are_left_out(tmp_path: Path) -> None:
    file = importing(tmp_path)
    file.write_text(IMPORTING)
    module = file_modules.load(file)
    assert not hasattr(module, "Logged")
    assert "line 2 (ImportError: cannot import name 'Logged'" in definitions.left_out(module)[0]


@pytest.mark.proof
def test_reproduction_runs_neighbours_that_fail_in_part(tmp_path: Path) -> None:
    text = resolve.loader(f"{importing(tmp_path)}:FeedForward")
    code = f"{text}\nprint(backend(6)(__import__('torch').ones(2, 6)).shape)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "torch.Size([2, 6])", ran.stderr


def test_modules_of_libraries_import_nothing_that_fails_in_part() -> None:
    assert definitions.parts_with_failures(nn.modules.loss) == []
