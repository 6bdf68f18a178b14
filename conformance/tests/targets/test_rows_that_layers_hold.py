"""Encoders whose layers hold their number of rows, and others that call them in unusual ways."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited
from proof import share

from attentest.targets.adapt import Unclear
from attentest.targets.members import members

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


def test_series_as_they_are_may_have_the_sequence_first(tmp_path: Path) -> None:
    plain = edited(
        SERIES,
        ("        self.proj = nn.Linear(input_size, d_model)\n", ""),
        ("self.encoder(self.proj(x))[-1]", "self.encoder(x)"),
        ("input_size, d_model", "d_model"),
    )
    backend = adapted(tmp_path, "Forecaster", plain, component="encoder")
    assert broken(backend, "encoder.formula") == []
    pooled = edited(plain, ("self.encoder(x)", "self.encoder(x).mean(dim=1)"))
    with pytest.raises(Unclear, match="mixes the samples"):
        adapted(tmp_path, "Forecaster", pooled, component="encoder")


WIDTHS = edited(
    SERIES,
    (
        "d_model, nhead, num_layers, dim_feedforward, output_size=1",
        "hidden_size, nhead, num_layers",
    ),
    (
        "self.proj = nn.Linear(input_size, d_model)",
        "self.proj = nn.Linear(input_size, hidden_size)",
    ),
    (
        "nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward)",
        "nn.TransformerEncoderLayer(hidden_size, nhead, 4 * hidden_size, batch_first=True)",
    ),
    ("nn.Linear(d_model, output_size)", "nn.Linear(hidden_size, 1)"),
    ("[-1]", "[:, -1]"),
)


def test_hidden_size_next_to_an_input_size_is_the_width_of_the_layers(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Forecaster", WIDTHS, component="encoder")
    assert broken(backend, "encoder.formula") == []
    mixed = edited(WIDTHS, (", batch_first=True", ""))
    with pytest.raises(Unclear, match="mixes the samples"):
        adapted(tmp_path, "Forecaster", mixed, component="encoder")


SWITCHED = """
import torch
from torch import nn


class TextClassifier(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, layers, inner, use_gates):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.gates = nn.Parameter(torch.ones(d_model)) if use_gates else None
        layer = nn.TransformerEncoderLayer(d_model, nhead, inner, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(d_model, 2)

    def forward(self, ids):
        x = self.tokens(ids)
        if self.gates is not None:
            x = torch.tanh(self.gates * x)
        return self.head(self.encoder(x).mean(dim=1))
"""


@pytest.mark.proof
def test_encoder_with_a_switch_that_has_no_default_is_a_question_that_names_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.py").write_text(SWITCHED)
    target = str(tmp_path / "own.py")
    assert {one.name: one.component for one in members(target) or ()} == {
        "TextClassifier": "encoder"
    }
    assert "use_gates=False" in asked(f"{target}:TextClassifier")
    backend = adapted(tmp_path, "TextClassifier", SWITCHED, given={"use_gates": False})
    assert broken(backend, "encoder.formula") == []


@share(2, rest=1)
@pytest.mark.parametrize("source", [FEW, PATCHES, FRAMES], ids=["images", "columns", "vectors"])
def test_norm_of_a_class_that_no_call_uses_is_a_question(source: str, tmp_path: Path) -> None:
    held = "self.norm = nn.LayerNorm(dim)"
    unused = edited(source, ("        self.head =", f"        {held}\n        self.head ="))
    with pytest.raises(Unclear, match="it holds norm, which no call of it uses"):
        adapted(tmp_path, "PatchNet", unused)
    used = edited(unused, ("(self.blocks(x)", "(self.norm(self.blocks(x))"))
    assert "it holds" not in "\n".join(adapted(tmp_path, "PatchNet", used).understood)  # type: ignore[attr-defined]


def test_mask_that_a_class_pads_for_a_row_of_its_own_is_not_judged(tmp_path: Path) -> None:
    first = edited(
        MASKED,
        (
            "        self.places =",
            "        self.first = nn.Parameter(torch.randn(1, 1, dim))\n        self.places =",
        ),
        (
            "        x = images + self.places[: images.shape[1]]",
            "        x = images + self.places[: images.shape[1]]\n"
            "        x = torch.cat([self.first.expand(len(x), -1, -1), x], dim=1)\n"
            "        if mask is not None:\n"
            "            mask = torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1)",
        ),
    )
    backend = adapted(tmp_path, "PatchNet", first)
    assert "not judged: what PatchNet makes of mask" in "\n".join(backend.assumed)  # type: ignore[attr-defined]
