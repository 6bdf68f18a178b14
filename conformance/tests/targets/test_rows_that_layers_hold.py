"""Encoders whose layers hold their number of rows, and others that call them in unusual ways."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

BODY = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads, seq_len):
        super().__init__()
        self.heads, self.seq_len, self.width = heads, seq_len, dim
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def split(self, x):
        return x.reshape(len(x), self.seq_len, self.heads, -1).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(len(x), self.seq_len, self.width))


class Block(nn.Module):
    def __init__(self, dim, heads, inner, seq_len):
        super().__init__()
        self.attn = Attention(dim, heads, seq_len)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, inner), nn.ReLU(), nn.Linear(inner, dim))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.mlp(x))


class PatchNet(nn.Module):
    def __init__(self, patch_size, channels, dim, heads, inner, layers, seq_len, num_classes):
        super().__init__()
        self.patches = nn.Conv2d(channels, dim, patch_size, patch_size)
        self.places = nn.Parameter(torch.randn(seq_len, dim))
        self.blocks = nn.Sequential(*(Block(dim, heads, inner, seq_len) for _ in range(layers)))
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.head(self.blocks(x).mean(dim=1))
"""
FREE = edited(BODY, ("len(x), self.seq_len,", "len(x), x.shape[1],"))
PATCHES = edited(
    FREE,
    ("channels, dim, heads, inner", "embed_size, dim, heads, inner"),
    ("nn.Conv2d(channels, dim, patch_size, patch_size)", "nn.Linear(embed_size, dim)"),
    ("torch.randn(seq_len, dim))", "torch.randn(seq_len, dim))\n        self.edge = patch_size"),
    (
        "self.patches(images).flatten(2).transpose(1, 2)",
        "self.patches(nn.functional.unfold(images, self.edge, stride=self.edge).transpose(1, 2))",
    ),
)
CLIPS = edited(
    FREE,
    ("patch_size, channels, dim, heads", "dim, heads"),
    ("nn.Conv2d(channels, dim, patch_size, patch_size)", "nn.Linear(8 * 5, dim)"),
    ("self.patches(images).flatten(2).transpose(1, 2)", "self.patches(images.flatten(2))"),
    ("def forward(self, images):", "def forward(self, images):\n        b, n, h, w = images.shape"),
)
FEW = edited(
    FREE,
    ("patch_size, channels, dim, heads, inner", "image_size, dim, heads, inner"),
    ("layers, seq_len, num_classes", "layers, num_classes, patch_size=16"),
    (
        "nn.Conv2d(channels, dim, patch_size, patch_size)",
        "nn.Conv2d(3, dim, patch_size, patch_size)\n"
        "        seq_len = (image_size // patch_size) ** 2",
    ),
)
FRAMES = edited(
    FREE,
    ("patch_size, channels, dim, heads", "dim, heads"),
    ("        self.patches = nn.Conv2d(channels, dim, patch_size, patch_size)\n", ""),
    ("self.patches(images).flatten(2).transpose(1, 2)", "images"),
    ("+ self.places", "+ self.places[: images.shape[1]]"),
)
MASKED = edited(
    FRAMES,
    ("def forward(self, images):", "def forward(self, images, mask=None):"),
    ("self.head(self.blocks(x).mean(dim=1))", "self.head(self.run(x, mask).mean(dim=1))"),
    (
        "nn.Sequential(*(Block(dim, heads, inner, seq_len) for _ in range(layers)))",
        "nn.ModuleList([Block(dim, heads, inner, seq_len) for _ in range(layers)])",
    ),
    (
        "    def forward(self, images, mask",
        """    def run(self, x, mask):
        for block in self.blocks:
            x = block(x, mask)
        return x

    def forward(self, images, mask""",
    ),
    ("        x = self.norm1(x + self.attn(x))", "        x = self.norm1(x + self.attn(x, mask))"),
    (
        "    def forward(self, x):\n        x = self.norm1",
        "    def forward(self, x, mask):\n        x = self.norm1",
    ),
    ("    def forward(self, x):\n        q, k", "    def forward(self, x, mask):\n        q, k"),
    (
        "weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(dim=-1)",
        """scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask[:, None, None] == 0, -1e9)
        weights = scores.softmax(dim=-1)""",
    ),
)
CLAUSES = ("encoder.formula", "encoder.layers-in-sequence")


@pytest.mark.proof
@pytest.mark.parametrize(
    "source",
    [BODY, PATCHES, CLIPS, FEW, FRAMES, MASKED],
    ids=["held", "columns", "flattened", "few-patches", "vectors", "masked-vectors"],
)
def test_layers_of_patches_are_judged(source: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "PatchNet", source)
    assert broken(backend, *CLAUSES) == []
    assert any("outside of its layers" in one for one in backend.assumed)
    held = any("hold theirs, here 16" in one for one in backend.assumed)
    assert held == (source is BODY)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.norm1(x + self.attn(x))", "self.norm1(self.attn(x))"),
        ("q.shape[-1] ** 0.5", "q.shape[-1]"),
        (".softmax(dim=-1)", ".softmax(dim=-2)"),
        ("(weights @ v).transpose(1, 2)", "(weights @ v)"),
    ],
)
def test_mistakes_in_layers_that_hold_their_rows_are_found(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "PatchNet", BODY, right, wrong, *CLAUSES)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("mask[:, None, None] == 0", "mask[:, None, :, None] == 0"),
        ("q.shape[-1] ** 0.5", "q.shape[-1]"),
        ("x = block(x, mask)", "x = block(x, None)"),
        ("x = block(x, mask)", "x = self.blocks[0](x, mask)"),
    ],
)
def test_mistakes_in_layers_of_vectors_as_they_are_are_found(
    right: str, wrong: str, tmp_path: Path
) -> None:
    clauses = ("encoder.padding-invariance", *CLAUSES)
    assert asked_or_broken(tmp_path, "PatchNet", MASKED, right, wrong, *clauses)


SERIES = """
import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, input_size, d_model, nhead, num_layers, dim_feedforward, output_size=1):
        super().__init__()
        self.proj = nn.Linear(input_size, d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.head = nn.Linear(d_model, output_size)

    def forward(self, x):
        return self.head(self.encoder(self.proj(x))[-1])
"""


@pytest.mark.proof
def test_series_with_the_sequence_first_are_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Forecaster", SERIES, component="encoder")
    assert broken(backend, *CLAUSES) == []


@pytest.mark.parametrize("pooled", ["[:, -1]", ".mean(dim=1)"])
def test_series_whose_samples_are_mixed_are_asked_about(pooled: str, tmp_path: Path) -> None:
    mistaken = edited(SERIES, ("[-1]", pooled))
    with pytest.raises(Unclear, match="mixes the samples"):
        adapted(tmp_path, "Forecaster", mistaken, component="encoder")


def test_input_size_of_a_series_is_no_size_of_images(tmp_path: Path) -> None:
    unread = edited(SERIES, ("self.proj(x)", "self.proj(x.cumsum(0).unflatten(0, (1, -1, 1)))"))
    with pytest.raises(Unclear) as question:
        adapted(tmp_path, "TransformerForecaster", unread.replace("Fore", "TransformerFore"))
    assert "takes images" not in str(question.value)
