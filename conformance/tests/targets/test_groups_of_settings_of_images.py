"""Encoders of images whose settings hold groups of them: `config.transformer["num_heads"]`."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.transformer["num_heads"]
        self.width = config.hidden_size // self.heads
        self.query, self.key, self.value, self.out = (
            nn.Linear(config.hidden_size, config.hidden_size) for _ in range(4)
        )

    def forward(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(-2, -1) / self.width**0.5
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.transformer["mlp_dim"])
        self.fc2 = nn.Linear(config.transformer["mlp_dim"], config.hidden_size)
        self.dropout = nn.Dropout(config.transformer["dropout_rate"])

    def forward(self, x):
        return self.dropout(self.fc2(self.dropout(nn.functional.gelu(self.fc1(x)))))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=1e-6)
        self.ffn_norm = nn.LayerNorm(config.hidden_size, eps=1e-6)
        self.ffn, self.attn = Mlp(config), Attention(config)

    def forward(self, x):
        x = x + self.attn(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layer = nn.ModuleList(Block(config) for _ in range(config.transformer["num_layers"]))
        self.encoder_norm = nn.LayerNorm(config.hidden_size, eps=1e-6)

    def forward(self, x):
        for one in self.layer:
            x = one(x)
        return self.encoder_norm(x)


class Embeddings(nn.Module):
    def __init__(self, config, img_size, in_channels=3):
        super().__init__()
        patch = config.patches["size"]
        count = (img_size // patch[0]) * (img_size // patch[1])
        self.patch_embeddings = nn.Conv2d(in_channels, config.hidden_size, patch, patch)
        self.places = nn.Parameter(torch.zeros(1, count + 1, config.hidden_size))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.hidden_size))
        self.dropout = nn.Dropout(config.transformer["dropout_rate"])

    def forward(self, x):
        rows = self.patch_embeddings(x).flatten(2).transpose(-1, -2)
        rows = torch.cat((self.cls_token.expand(len(x), -1, -1), rows), dim=1)
        return self.dropout(rows + self.places)


class VisionTransformer(nn.Module):
    def __init__(self, config, img_size=224, num_classes=1000, zero_head=False):
        super().__init__()
        self.embeddings = Embeddings(config, img_size)
        self.encoder = Encoder(config)
        self.head = nn.Linear(config.hidden_size, num_classes)
        self.classifier = config.classifier

    def forward(self, x):
        return self.head(self.encoder(self.embeddings(x))[:, 0])
"""
CLAUSES = ("encoder.formula", "encoder.depth-counts")
KEPT = "self.classifier = config.classifier"


@pytest.mark.proof
def test_groups_of_settings_of_images_are_read(tmp_path: Path) -> None:
    backend: Any = adapted(tmp_path, "VisionTransformer", CODE)
    assert "patches=(size=(16, 16))" in "\n".join(backend.understood)
    assert broken(backend, *CLAUSES) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" / self.width**0.5", ""),
        (".softmax(-1)", ".softmax(1)"),
        ("x = x + self.attn(self.attention_norm(x))", "x = self.attn(self.attention_norm(x))"),
    ],
    ids=["no scale", "softmax over heads", "no residual"],
)
def test_mistakes_behind_groups_of_settings_are_no_pass(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "VisionTransformer", CODE, right, wrong, *CLAUSES)


@pytest.mark.proof
@pytest.mark.parametrize(
    "asked",
    [
        "self.pooled = config.classifier == 'gap'",
        "self.pooled = bool(config.classifier)",
        f"{KEPT}\n\n    def pooled(self):\n        return bool(self.classifier)",
    ],
)
def test_field_that_is_compared_is_no_group_that_is_only_kept(asked: str, tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "VisionTransformer", CODE.replace(KEPT, asked))
