"""Encoders whose call needs positions, and those of images that are built for a number of them."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear

BERT = """
import math
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, hidden_size)

    def forward(self, x, attention_mask=None):
        b, n, d = x.shape
        maps = self.query, self.key, self.value
        q, k, v = (f(x).view(b, n, self.num_heads, -1).transpose(1, 2) for f in maps)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.num_heads)
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, None, :] == 0, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, hidden_size, num_heads, intermediate_size):
        super().__init__()
        self.attention = SelfAttention(hidden_size, num_heads)
        self.norm1, self.norm2 = nn.LayerNorm(hidden_size), nn.LayerNorm(hidden_size)
        self.ffn = nn.Sequential(
            nn.Linear(hidden_size, intermediate_size),
            nn.GELU(),
            nn.Linear(intermediate_size, hidden_size),
        )

    def forward(self, x, attention_mask=None):
        x = self.norm1(x + self.attention(x, attention_mask))
        return self.norm2(x + self.ffn(x))


class BertModel(nn.Module):
    def __init__(self, vocab_size, hidden_size, num_layers, num_heads, inner_size, max_len=512):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size)
        self.position_embeddings = nn.Embedding(max_len, hidden_size)
        self.norm = nn.LayerNorm(hidden_size)
        self.layers = nn.ModuleList(
            Layer(hidden_size, num_heads, inner_size) for _ in range(num_layers)
        )
        self.pooler = nn.Linear(hidden_size, hidden_size)

    def forward(self, input_ids, position_ids, attention_mask=None):
        x = self.norm(self.word_embeddings(input_ids) + self.position_embeddings(position_ids))
        for layer in self.layers:
            x = layer(x, attention_mask)
        return x, torch.tanh(self.pooler(x[:, 0]))
"""
VIT = """
import torch
from torch import nn


class Patchify(nn.Module):
    def __init__(self, patch_size, num_channels, hidden_size):
        super().__init__()
        self.proj = nn.Conv2d(num_channels, hidden_size, patch_size, patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, hidden_size))

    def forward(self, img):
        x = self.proj(img).flatten(2).transpose(1, 2)
        return torch.cat([self.cls_token.expand(len(img), -1, -1), x], dim=1)


class Block(nn.Module):
    def __init__(self, num_heads, hidden_size, mlp_size):
        super().__init__()
        self.num_heads = num_heads
        self.ln1, self.ln2 = nn.LayerNorm(hidden_size), nn.LayerNorm(hidden_size)
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size)
        self.proj = nn.Linear(hidden_size, hidden_size)
        self.mlp = nn.Sequential(
            nn.Linear(hidden_size, mlp_size), nn.GELU(), nn.Linear(mlp_size, hidden_size)
        )

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / (d // self.num_heads) ** 0.5).softmax(-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.ln2(x))


class VisionTransformer(nn.Module):
    def __init__(self, patch_size: int, num_channels: int, hidden_size: int, sequence_len: int,
                 num_heads: int, num_layers: int, mlp_size: int, num_classes: int):
        super().__init__()
        self.patchifier = Patchify(patch_size, num_channels, hidden_size)
        self.positions = nn.Parameter(torch.randn(1, sequence_len, hidden_size))
        self.encoder = nn.Sequential(
            *[Block(num_heads, hidden_size, mlp_size) for _ in range(num_layers)]
        )
        self.layer_norm = nn.LayerNorm(hidden_size)
        self.head = nn.Linear(hidden_size, num_classes)

    def forward(self, x):
        z = self.encoder(self.patchifier(x) + self.positions)
        return self.head(self.layer_norm(z[:, 0]))
"""


@pytest.mark.proof
def test_positions_that_a_call_needs_are_those_of_its_tokens(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "BertModel", BERT)
    said = "\n".join(backend.understood)  # type: ignore[attr-defined]
    assert "positional_encoding=learned" in said
    assert "position_offset" not in said
    assert not broken(backend, "encoder.formula", "encoder.depth-counts")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [(" / math.sqrt(d // self.num_heads)", ""), ("self.norm2(x + self.ffn", "self.norm2(self.ffn")],
    ids=["no scale", "no residual"],
)
def test_mistakes_in_encoders_with_positions_are_detected(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "BertModel", BERT, right, wrong, "encoder.formula")


def test_vectors_called_pos_are_no_positions(tmp_path: Path) -> None:
    source = BERT.replace("position_ids", "pos").replace("self.position_embeddings(pos)", "pos")
    with pytest.raises(Unclear):
        adapted(tmp_path, "BertModel", source)


@pytest.mark.proof
def test_images_of_so_many_patches_as_positions_are_read(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "VisionTransformer", VIT)
    assert not broken(backend, "encoder.formula", "encoder.depth-counts")


@pytest.mark.proof
def test_mistakes_in_encoders_of_such_images_are_detected(tmp_path: Path) -> None:
    right, wrong = ".softmax(-1)", ".softmax(-2)"
    assert asked_or_broken(tmp_path, "VisionTransformer", VIT, right, wrong, "encoder.formula")
