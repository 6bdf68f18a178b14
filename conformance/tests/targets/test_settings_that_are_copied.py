"""Settings that a constructor copies before it reads them, and fields that other files read."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited
from proof import share

import attentest

SOURCE = """
from types import SimpleNamespace

import torch
from torch import nn


def resolved(settings):
    return dict(settings)


class Block(nn.Module):
    def __init__(self, settings):
        super().__init__()
        own = resolved(settings)
        width, self.heads = own["emb_dim"], own["n_heads"]
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, d = x.shape
        split = self.qkv(self.first(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = split
        scores = q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5
        later = torch.ones(t, t).triu(1).bool()
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.down(torch.relu(self.up(self.second(x))))


class SmallGPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        own = resolved(cfg)
        self.tokens = nn.Embedding(own["vocab_size"], own["emb_dim"])
        self.places = nn.Embedding(own["context_length"], own["emb_dim"])
        self.blocks = nn.ModuleList(Block(own) for _ in range(own["n_layers"]))
        self.norm = nn.LayerNorm(own["emb_dim"])
        self.head = nn.Linear(own["emb_dim"], own["vocab_size"], bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""

FORMULA = "language_model.formula"


@share(2, rest=1)
@pytest.mark.parametrize(
    "copied",
    [
        "return dict(settings)",
        "return {**settings}",
        "return {name: one for name, one in settings.items()}",
        "return settings.copy()",
    ],
)
def test_settings_that_are_copied_are_read(tmp_path: Path, copied: str) -> None:
    backend = adapted(tmp_path, "SmallGPT", edited(SOURCE, ("return dict(settings)", copied)))
    assert broken(backend, FORMULA) == []


def test_settings_that_become_attributes_are_read(tmp_path: Path) -> None:
    source = edited(
        SOURCE,
        ("return dict(settings)", "return SimpleNamespace(**settings)"),
        ("Block(own)", "Block(cfg)"),
    )
    for name in ("emb_dim", "n_heads", "n_layers", "vocab_size", "context_length"):
        source = source.replace(f'own["{name}"]', f"own.{name}")
    assert broken(adapted(tmp_path, "SmallGPT", source), FORMULA) == []


def test_settings_that_become_attributes_of_the_model_are_read(tmp_path: Path) -> None:
    held = "        for name, one in cfg.items():\n            setattr(self, name, one)\n"
    source = edited(SOURCE, ("        own = resolved(cfg)\n", held), ("Block(own)", "Block(cfg)"))
    whole = source.partition("class SmallGPT")
    for name in ("emb_dim", "n_layers", "vocab_size", "context_length"):
        whole = (*whole[:2], whole[2].replace(f'own["{name}"]', f"self.{name}"))
    assert broken(adapted(tmp_path, "SmallGPT", "".join(whole)), FORMULA) == []


def test_settings_that_are_copied_excuse_no_mistake(tmp_path: Path) -> None:
    source = edited(SOURCE, ("self.head(self.norm(x))", "self.head(x)"))
    assert broken(adapted(tmp_path, "SmallGPT", source), "language_model.parameter-count", FORMULA)


SETTINGS = """
class Settings:
    def __init__(self, vocab_size: int, block_size: int, width: int, head_count: int,
                 layer_count: int, widening: int):
        self.vocab_size = vocab_size
        self.block_size = block_size
        self.width = width
        self.head_count = head_count
        self.layer_count = layer_count
        self.widening = widening


def small():
    return Settings(50257, 1024, 768, 12, 12, widening=4)
"""

NETWORK = """
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up = nn.Linear(config.width, config.widening * config.width)
        self.down = nn.Linear(config.widening * config.width, config.width)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))
"""

WHOLE = """
import torch
from torch import nn

from network import Network
from settings import Settings


class Block(nn.Module):
    def __init__(self, config: Settings):
        super().__init__()
        width, self.heads = config.width, config.head_count
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = Network(config)

    def forward(self, x):
        b, t, d = x.shape
        split = self.qkv(self.first(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = split
        scores = q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5
        later = torch.ones(t, t).triu(1).bool()
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.network(self.second(x))


class WideGPT(nn.Module):
    def __init__(self, config: Settings):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.width)
        self.places = nn.Embedding(config.block_size, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layer_count))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""


def test_a_factor_that_another_file_reads_is_as_a_file_writes_it(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(SETTINGS)
    (tmp_path / "network.py").write_text(NETWORK)
    (tmp_path / "model.py").write_text(WHOLE)
    backend = attentest.adapted(f"{tmp_path / 'model.py'}:WideGPT")
    assert any("widening=4, as settings.py writes" in one for one in backend.assumed)
    assert broken(backend, FORMULA) == []
