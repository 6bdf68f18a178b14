"""Fields of settings that nothing says: the files around the model write their values."""

import pytest
from mistaken_code import adapted, asked, broken, edited
from proof import share

from attentest.targets.constants.written import value_written
from attentest.targets.file_modules import load

CODE = """
import torch
from torch import nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads, self.rows = cfg.num_heads, cfg.kept_rows
        self.packed = nn.Linear(cfg.d_model, 3 * cfg.d_model)
        self.out = nn.Linear(cfg.d_model, cfg.d_model)

    def forward(self, x):
        assert len(x) < self.rows
        b, t, width = x.shape
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2)
                   for one in self.packed(x).chunk(3, -1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        later = torch.ones(t, t, device=x.device).triu(1).bool()
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(b, t, width))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.attend = Attention(cfg)
        self.one, self.two = nn.LayerNorm(cfg.d_model), nn.LayerNorm(cfg.d_model)
        self.up = nn.Linear(cfg.d_model, 4 * cfg.d_model)
        self.down = nn.Linear(4 * cfg.d_model, cfg.d_model)

    def forward(self, x):
        x = x + self.attend(self.one(x))
        return x + self.down(F.relu(self.up(self.two(x))))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.table = nn.Embedding(cfg.vocab_size, cfg.d_model)
        self.places = nn.Embedding(cfg.max_seq_len, cfg.d_model)
        self.blocks = nn.ModuleList([Block(cfg) for _ in range(cfg.num_layers)])
        self.norm = nn.LayerNorm(cfg.d_model)
        self.head = nn.Linear(cfg.d_model, cfg.vocab_size)

    def forward(self, tokens):
        x = self.table(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""
SETTINGS = """
from dataclasses import dataclass


@dataclass
class TrainConfig:
    name: str
    vocab_size: int
    max_seq_len: int
    num_layers: int
    num_heads: int
    d_model: int
    data_path: str
    learning_rate: float
    eval_interval: int
    kept_rows: int = 1000


"""
FORMULA = "language_model.formula"


@share(2, rest=1)
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("settings.yaml", "model:\n  kept_rows: 640  # of a cache\n"),
        ("conf/base.json", '{"model": {"kept_rows": 640,\n "lr": 1e-3}}'),
        ("train.py", "from own import GPT\n\n\ndef made():\n    return dict(kept_rows=640)\n"),
    ],
)
def test_field_that_nothing_says_has_the_value_of_a_file_near(tmp_path, file, text):
    place = tmp_path / file
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)
    backend = adapted(tmp_path, "GPT", CODE)
    assert f"kept_rows=640, as {place.name} writes" in "\n".join(backend.assumed)
    assert broken(backend, FORMULA) == []


def test_field_that_no_file_writes_is_a_question(tmp_path):
    (tmp_path / "own.py").write_text(CODE)
    assert "what kept_rows is" in asked(f"{tmp_path / 'own.py'}:GPT")


def test_mistake_in_a_model_with_a_written_field_is_reported(tmp_path):
    (tmp_path / "settings.toml").write_text("kept_rows = 640\n")
    wrong = edited(CODE, ("x + self.attend(self.one(x))", "self.attend(self.one(x))"))
    assert broken(adapted(tmp_path, "GPT", wrong), FORMULA)


def test_settings_of_training_leave_the_sizes_of_the_model_as_they_are(tmp_path):
    made = edited(CODE, ("class Attention", f"{SETTINGS}class Attention"))
    made = edited(
        made,
        (
            "class GPT(nn.Module):\n    def __init__(self, cfg)",
            "class GPT(nn.Module):\n    def __init__(self, cfg: TrainConfig)",
        ),
    )
    backend = adapted(tmp_path, "GPT", made)
    assert "data_path=''" in "\n".join(backend.assumed)
    assert broken(backend, FORMULA) == []


def test_written_values_are_the_nearest_ones(tmp_path):
    (tmp_path / "own.py").write_text("class Model:\n    rate: float = 0.25\n")
    (tmp_path / "train.py").write_text(
        "options.add_argument('--kept-rows', default=12)\nrate = 0.5\nmodel.depth = 3\n"
    )
    (tmp_path / "a.yaml").write_text("depth: 5\nwords: some plain text\nnothing: null\nok: true\n")
    thing = load(tmp_path / "own.py").Model
    found = {
        name: one and one[0]
        for name in ("rate", "kept_rows", "depth", "words", "nothing", "ok")
        for one in [value_written(thing, name)]
    }
    assert found == {
        "rate": 0.25,
        "kept_rows": 12,
        "depth": 5,
        "words": None,
        "nothing": None,
        "ok": True,
    }
