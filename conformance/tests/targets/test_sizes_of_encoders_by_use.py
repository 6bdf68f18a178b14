"""Encoders whose sizes no usual name says: by uses, letters, settings and numbers of heads."""

from pathlib import Path
from typing import Any

import pytest
import torch
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.models.size_names import size_by_words
from attentest.targets.resolve import module_of
from attentest.targets.unjudged import looks_like

PARTS = """
from dataclasses import dataclass

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, num_heads):
        super().__init__()
        assert width % num_heads == 0
        self.heads = num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads, mlp_dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, mlp_dim), nn.Linear(mlp_dim, width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.down(torch.relu(self.up(x))))
"""
USES = (
    PARTS
    + """

class Encoder(nn.Module):
    def __init__(self, times, embeddings, splits, d_ff_scale):
        super().__init__()
        made = (Block(embeddings, splits, d_ff_scale * embeddings) for _ in range(times))
        self.blocks = nn.ModuleList(made)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""
)
LETTERS = (
    PARTS
    + """

@dataclass
class BertConfig:
    L: int = 12
    H: int = 768
    A: int = 12
    d_ff: int = 3072
    V: int = 30000
    max_len: int = 512

    def __post_init__(self):
        self.d_ff = 4 * self.H


class BertModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(config.V, config.H)
        self.places = nn.Embedding(config.max_len, config.H)
        made = (Block(config.H, config.A, config.d_ff) for _ in range(config.L))
        self.blocks = nn.ModuleList(made)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return x
"""
)
FIXED = (
    PARTS.replace("width, heads, mlp_dim", "width, mlp_dim").replace(
        "Attention(width, heads)", "Attention(width, num_heads=8)"
    )
    + """

class Classifier(nn.Module):
    def __init__(self, vocab_size, d_model=256, num_layers=6, mlp_dim=512, num_classes=2):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(Block(d_model, mlp_dim) for _ in range(num_layers))
        self.head = nn.Linear(d_model, num_classes)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))
"""
)
KEYS = (
    PARTS
    + """

class Tagger(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["hidden_size"]
        self.words = nn.Embedding(config["vocab_size"], width)
        made = range(config["num_hidden_layers"])
        heads, inner = config["num_attention_heads"], config["intermediate_size"]
        self.blocks = nn.ModuleList(Block(width, heads, inner) for _ in made)
        for one in self.parameters():
            nn.init.normal_(one, std=config["initializer_range"])

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return x
"""
)
CODES = [
    ("Encoder", USES),
    ("BertModel", LETTERS),
    ("Classifier", FIXED),
    ("Tagger", KEYS),
    ("Block", FIXED),
]
LAYERS = """
from torch import nn


class EncoderLayer(nn.Module):
    def forward(self, x):
        return x


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = EncoderLayer()

    def forward(self, x):
        return self.layer(x)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x)
"""
CLAUSES = ("encoder.formula", "encoder.depth-counts", "encoder.every-parameter-reached")
OF_A_LAYER = ("encoder.layer-formula",)


def clauses(name: str) -> tuple[str, ...]:
    return OF_A_LAYER if name == "Block" else CLAUSES


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "source"), CODES, ids=["uses", "letters", "heads", "keys", "layer"]
)
def test_encoders_are_built_with_sizes_that_no_usual_name_says(
    name: str, source: str, tmp_path: Path
) -> None:
    backend: Any = adapted(tmp_path, name, source)
    assert broken(backend, *clauses(name)) == []


@pytest.mark.proof
@pytest.mark.parametrize(("name", "source"), CODES[:3], ids=["uses", "letters", "heads"])
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" / q.shape[-1] ** 0.5", ""),
        (".softmax(-1)", ".softmax(1)"),
        ("self.norm1(x + self.attention(x))", "self.norm1(self.attention(x))"),
        (".transpose(1, 2).flatten(2)", ".flatten(1, 2).unflatten(1, (x.shape[1], -1)).flatten(2)"),
    ],
    ids=["no scale", "softmax over heads", "no residual", "merged without a transposition"],
)
def test_mistakes_in_encoders_with_such_sizes_are_no_pass(
    name: str, source: str, right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, name, source, right, wrong, *clauses(name))


def test_class_that_holds_layers_may_be_a_model_whatever_its_name_is(tmp_path: Path) -> None:
    (tmp_path / "tags.py").write_text(LAYERS)
    home = vars(module_of(str(tmp_path / "tags.py")))
    assert looks_like("Tagger", home["Tagger"]) == "model"
    assert looks_like("Plain", home["Plain"]) == ""


def test_function_without_arguments_is_no_mask() -> None:
    def show_masks() -> None:
        print(torch.ones(3, 3).tril())

    def hide_later(length: int) -> torch.Tensor:
        return torch.ones(length, length).tril()

    assert looks_like("show_masks", show_masks) == ""
    assert looks_like("hide_later", hide_later) == "mask"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("nenblocks", "layers"),
        ("ndeblocks", "layers"),
        ("pwnetdim", "d_ff"),
        ("bertnumheads", "heads"),
        ("bertmaxlen", "max_length"),
        ("vitpatchsize", ""),
    ],
)
def test_words_of_names_say_sizes(name: str, size: str) -> None:
    assert size_by_words(name, "") == size
