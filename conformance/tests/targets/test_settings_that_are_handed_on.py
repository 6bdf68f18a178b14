"""Decoder-only models that hand a dictionary on by `**`, or have a switch that nothing says."""

import importlib.util
import sys
from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.construction.building import building

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, n_head, context):
        super().__init__()
        self.n_head = n_head
        self.packed, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.register_buffer("later", torch.ones(context, context).triu(1).bool())

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (one.transpose(1, 2) for one in
                   self.packed(x).view(b, t, 3, self.n_head, -1).unbind(2))
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(self.later[:t, :t], -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, dim, expand_size, mixer):
        super().__init__()
        self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mixer = Attention(**mixer)
        self.up, self.down = nn.Linear(dim, expand_size), nn.Linear(expand_size, dim)

    def forward(self, x):
        x = x + self.mixer(self.first(x))
        return x + self.down(torch.relu(self.up(self.second(x))))


class GPT(nn.Module):
    def __init__(self, vocab_size, expand_size, mixer: dict, n_layer=2):
        super().__init__()
        dim = mixer["dim"]
        self.tokens = nn.Embedding(vocab_size, dim)
        self.places = nn.Embedding(mixer["context"], dim)
        blocks = [Block(dim, expand_size, dict(**mixer)) for _ in range(n_layer)]
        self.blocks, self.final = nn.Sequential(*blocks), nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab_size)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.final(self.blocks(x)))
"""
SWITCHED = edited(
    CODE,
    ("n_layer=2):", "n_layer=2, *, direct: bool):"),
    ("Block(dim, expand_size, dict(**mixer))", "Block(dim, expand_size, dict(**mixer), direct)"),
    ("expand_size, mixer):\n", "expand_size, mixer, direct):\n        self.direct = direct\n"),
    ("x = x + self.mixer(self.first(x))", "x = x * self.direct + self.mixer(self.first(x))"),
)
FORMULA = "language_model.formula"


WINDOWED = """
from torch import nn


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        width = cfg["emb_dim"]
        self.tokens = nn.Embedding(cfg["vocab_size"], width)
        self.blocks = nn.ModuleList(
            [nn.Linear(width, cfg["n_heads"] * cfg["window_size"]) for _ in range(cfg["n_layers"])]
        )
        self.positions = nn.Embedding(cfg["context_length"], width)

    def forward(self, ids):
        return self.tokens(ids)
"""
FORMULA = "language_model.formula"


def _expression(folder: Path, source: str) -> str:
    """Return how the model of `source` is built."""
    spec = importlib.util.spec_from_loader("own_settings", loader=None)
    assert spec
    module = importlib.util.module_from_spec(spec)
    path = folder / "own_settings.py"
    path.write_text(source)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "own_settings", module)
        exec(compile(source, str(path), "exec"), vars(module))
        module.__file__ = str(path)
        return building(module.GPT, "GPT", Reading()).expression


def test_handed_on_settings_have_the_arguments_that_the_part_requires(tmp_path: Path) -> None:
    code = _expression(tmp_path, CODE)
    assert "expand_size=sizes.d_ff" in code
    held = code.partition("mixer=dict(")[2].partition(")")[0].split(", ")
    assert sorted(held) == ["context=sizes.max_length", "dim=sizes.d_model", "n_head=sizes.heads"]


def test_handed_on_argument_that_nothing_says_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="quux"):
        _expression(tmp_path, CODE.replace("context):", "context, quux):"))


def test_window_is_none_where_a_greatest_length_is_read_after_it(tmp_path: Path) -> None:
    code = _expression(tmp_path, WINDOWED)
    assert "window_size=sizes.window" in code
    assert "context_length=sizes.max_length" in code
    with pytest.raises(Unclear, match="Nothing says what window_size is"):
        _expression(tmp_path, WINDOWED.replace("context_length", "emb_dim"))


@pytest.mark.proof
def test_model_with_handed_on_settings_conforms_and_mistakes_are_found(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "GPT", CODE), FORMULA) == []
    assert broken(adapted(tmp_path, "GPT", edited(CODE, ("triu(1)", "triu(2)"))), FORMULA)


@pytest.mark.proof
def test_switch_without_which_a_mistake_is_read_is_on(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", SWITCHED)
    assert any("assumed direct=True, which nothing says: with it" in one for one in backend.assumed)
    assert broken(backend, FORMULA) == []
    mistaken = edited(SWITCHED, ("x * self.direct + self", "self"))
    assert broken(adapted(tmp_path, "GPT", mistaken), FORMULA)
