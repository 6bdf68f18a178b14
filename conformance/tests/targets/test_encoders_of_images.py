"""Encoders of images: the layers behind the rows of patches are judged, and nothing else."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.encoders.image_names import is_of_images
from attentest.targets.members import members

VIT = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads, mlp_dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, channels=3):
        super().__init__()
        self.patches = nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.places = nn.Parameter(torch.randn(1, (image_size // patch_size) ** 2 + 1, dim))
        self.blocks = nn.ModuleList(Block(dim, heads, mlp_dim) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, num_classes)

    def forward(self, img):
        x = self.patches(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])
"""
TWICE = ("            x = block(x)\n", "            x = block(x) + x\n")
LINEAR = VIT.replace(
    "nn.Conv2d(channels, dim, kernel_size=patch_size, stride=patch_size)",
    "nn.Linear(channels * patch_size**2, dim)",
).replace(
    "self.patches(img).flatten(2)",
    "self.patches(nn.functional.unfold(img, 4, stride=4).transpose(1, 2)).transpose(1, 2)",
)
FLAT = VIT.replace("self.norm(x)[:, 0]", "self.norm(x).flatten(1)").replace(
    "nn.Linear(dim, num_classes)", "nn.Linear(17 * dim, num_classes)"
)


@pytest.mark.proof
@pytest.mark.parametrize("source", [VIT, LINEAR, FLAT], ids=["convolution", "matrix", "flat head"])
def test_layers_behind_patches_are_judged(source: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "ViT", source)
    assert "not judged: what ViT does outside of its layers and their norm" in backend.assumed
    assert backend.choices["final_norm"] == "present"
    assert not broken(backend, "encoder.formula")


SHORT = VIT.replace("self, image_size", "self, im_size").replace("(image_size", "(im_size")
BY_DEFAULT = VIT.replace(
    "self, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim, channels=3",
    "self, num_classes, dim, depth, heads, mlp_dim, input_size=32, patch_size=8, channels=3",
).replace("(image_size", "(input_size")


COUNTED = (
    VIT.replace("self, image_size", "self, image_shape").replace("(image_size", "(image_shape")
).replace("num_classes", "number_classes")
FILTERS = VIT.replace("mlp_dim", "mlp_filters").replace(
    "dim, heads, mlp", "dim, d_hidden, heads, mlp"
)
FILTERS = FILTERS.replace("depth, heads, mlp", "depth, d_hidden, heads, mlp").replace(
    "Attention(dim, heads)", "Attention(d_hidden, heads)"
)


@pytest.mark.parametrize(
    "source",
    [SHORT, BY_DEFAULT, COUNTED, FILTERS],
    ids=["short", "by default", "counted", "filters"],
)
def test_sizes_of_images_by_other_names_are_no_sizes_of_the_model(
    source: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "ViT", source)
    assert "not judged: what ViT does outside of its layers and their norm" in backend.assumed


@pytest.mark.proof
def test_encoder_of_images_is_a_component_of_its_file_and_can_be_written(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "ViT", VIT)
    found = {one.name: one.component for one in members(str(tmp_path / "own.py")) or ()}
    assert found["ViT"] == "encoder"
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), "encoder.formula")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" * self.scale)", ")"),
        ("softmax(dim=-1)", "softmax(dim=-2)"),
        ("x = x + self.attn(self.norm1(x))", "x = self.norm1(x) + self.attn(self.norm1(x))"),
        ("return x + self.mlp(self.norm2(x))", "return self.mlp(self.norm2(x))"),
        TWICE,
        ("        for block in self.blocks:", "        for block in self.blocks[:1]:"),
    ],
    ids=["scale", "axis", "residual", "no residual", "twice", "one layer"],
)
def test_mistakes_behind_patches_are_found_or_asked_about(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "ViT", VIT, right, wrong, "encoder.formula")


def test_layers_that_get_more_than_the_last_output_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "ViT", VIT.replace(*TWICE))


NESTED = (
    VIT.replace(
        "class ViT",
        """class Stack(nn.Module):
    def __init__(self, dim, depth, heads, mlp_dim):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([Attention(dim, heads), nn.LayerNorm(dim), nn.LayerNorm(dim),
            nn.Sequential(nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim))])
            for _ in range(depth)
        )

    def forward(self, x):
        for attn, norm, other, mlp in self.layers:
            x = x + attn(norm(x))
            x = x + mlp(other(x))
        return x


class ViT""",
    )
    .replace(
        "nn.ModuleList(Block(dim, heads, mlp_dim) for _ in range(depth))",
        "Stack(dim, depth, heads, mlp_dim)",
    )
    .replace(
        "        for block in self.blocks:\n            x = block(x)\n",
        "        x = self.blocks(x)\n",
    )
)


@pytest.mark.proof
def test_a_stack_that_gets_the_rows_is_judged_alone(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "ViT", NESTED)
    assert "blocks is judged, and nothing else of it" in "\n".join(backend.understood)  # type: ignore[attr-defined]
    assert not broken(backend, "encoder.formula")
    assert asked_or_broken(tmp_path, "ViT", NESTED, "x + attn(norm(x))", "attn(norm(x))")


def test_a_class_that_refuses_widths_of_its_sines_is_a_question(tmp_path: Path) -> None:
    refusing = VIT.replace(
        "        self.cls_token", "        assert dim % 4 == 0\n        self.cls_token"
    )
    with pytest.raises(Unclear, match="cannot be built at a width of 2"):
        adapted(tmp_path, "ViT", refusing)


def test_a_width_beside_a_height_is_that_of_images() -> None:
    assert is_of_images("width", ["height", "width", "dim"])
    assert not is_of_images("width", ["patchsize", "width", "layers"])


@pytest.mark.proof
def test_images_that_no_usual_size_fits_are_a_question_by_any_name(tmp_path: Path) -> None:
    odd = VIT.replace("self, image_size, patch_size", "self, patch_size").replace(
        "(image_size // patch_size) ** 2", "1001"
    )
    for name in ("ViT", "VisionTransformer"):
        with pytest.raises(Unclear, match=f"{name} takes images, and its layers are what can be"):
            adapted(tmp_path, name, odd.replace("class ViT", f"class {name}"))
