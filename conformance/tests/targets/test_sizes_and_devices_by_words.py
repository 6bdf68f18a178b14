"""Arguments that no list of names has: widths by their words, epsilons, devices by default."""

import importlib.util
import sys
from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt.reading import Reading
from attentest.targets.language_models.construction.building import PROBE, building
from attentest.targets.members import members
from attentest.targets.signatures import is_accelerator

GPT = """
import torch
from torch import nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, embedding_n, num_heads, block_size):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(embedding_n, 3 * embedding_n)
        self.out = nn.Linear(embedding_n, embedding_n)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        length = x.shape[1]
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        scores = scores.masked_fill(self.tril[:length, :length] == 0, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, embedding_n, num_heads, block_size):
        super().__init__()
        self.attention = Attention(embedding_n, num_heads, block_size)
        self.ff = nn.Sequential(
            nn.Linear(embedding_n, 4 * embedding_n),
            nn.ReLU(),
            nn.Linear(4 * embedding_n, embedding_n),
        )
        self.norm1, self.norm2 = nn.LayerNorm(embedding_n), nn.LayerNorm(embedding_n)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.ff(self.norm2(x))


class TextNano(nn.Module):
    def __init__(self, vocab_size, block_size=8, embedding_n=32, num_heads=4, num_layers=3):
        super().__init__()
        self.table = nn.Embedding(vocab_size, embedding_n)
        self.places = nn.Embedding(block_size, embedding_n)
        self.blocks = nn.Sequential(
            *[Block(embedding_n, num_heads, block_size) for _ in range(num_layers)]
        )
        self.norm, self.head = nn.LayerNorm(embedding_n), nn.Linear(embedding_n, vocab_size)

    def forward(self, source, target=None):
        places = torch.arange(source.shape[1], device=source.device)
        logits = self.head(self.norm(self.blocks(self.table(source) + self.places(places))))
        if target is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), target.flatten())
"""


@pytest.mark.proof
def test_model_of_one_text_with_labels_called_target_is_decoder_only(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TextNano", GPT)
    assert not broken(backend, "language_model.formula")
    found = {one.name: one.component for one in members(str(tmp_path / "own.py")) or ()}
    assert found["TextNano"] == "language_model"


@pytest.mark.proof
def test_mistake_of_a_model_with_labels_called_target_is_found(tmp_path: Path) -> None:
    scale = " * q.shape[-1] ** -0.5"
    assert asked_or_broken(tmp_path, "TextNano", GPT, scale, "", "language_model.formula")


SETTINGS = """
from dataclasses import dataclass

from torch import nn


@dataclass
class Config:
    vocab_size: int
    d_model: int
    n_heads: int
    n_layers: int
    rms_eps: float


class GPT(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.table = nn.Embedding(config.vocab_size, config.d_model)
        self.epsilon = config.rms_eps
        self.blocks = nn.ModuleList(
            [nn.Linear(config.d_model, 7 * config.n_heads) for _ in range(config.n_layers)]
        )

    def forward(self, ids):
        return self.table(ids)
"""


def test_epsilon_of_settings_without_a_default_is_a_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings_of_gpt.py").write_text(SETTINGS)
    spec = importlib.util.spec_from_file_location(
        "settings_of_gpt", tmp_path / "settings_of_gpt.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "settings_of_gpt", module)
    spec.loader.exec_module(module)
    assert building(module.GPT, "GPT", Reading())(PROBE).epsilon == 1e-5


@pytest.mark.parametrize(
    ("name", "default", "wanted"),
    [
        ("device", "cuda", True),
        ("device", "cuda:0", True),
        ("device", "cpu", False),
        ("device", None, False),
        ("backend", "cuda", False),
    ],
)
def test_accelerator_by_default_is_no_device_to_read_code_on(
    name: str, default: object, wanted: bool
) -> None:
    assert is_accelerator(name, default) is wanted


CLASSIFIER = """
from torch import nn


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.table = nn.Embedding(config.encoder_vocab_size, config.d_embed)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                config.d_embed, config.h, config.d_ff, config.dropout, batch_first=True
            )
            for _ in range(config.N_encoder)
        )

    def forward(self, input):
        x = self.table(input)
        for block in self.blocks:
            x = block(x)
        return x


class Transformer(nn.Module):
    def __init__(self, config, num_classes):
        super().__init__()
        self.encoder = Encoder(config)
        self.head = nn.Linear(config.d_embed, num_classes)

    def forward(self, x):
        return self.head(self.encoder(x).mean(-2))
"""


def test_width_of_a_configuration_by_its_words_is_that_of_a_classifier(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Transformer", CLASSIFIER)
    assert "encoder" in backend.recipes  # type: ignore[attr-defined]
    assert not broken(backend, "encoder.formula")
