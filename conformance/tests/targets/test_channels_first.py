"""Code of series and images: (B, D, L), (B, D, H, W) and (B, H, W, D)."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

HEAD = """
import math

import torch
from torch import nn


"""

NORM = (
    HEAD
    + """
class LayerNorm(nn.Module):
    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(1, channels, 1))
        self.beta = nn.Parameter(torch.zeros(1, channels, 1))

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        variance = ((x - mean) ** 2).mean(1, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + self.eps) * self.gamma + self.beta
"""
)

NORM_OF_IMAGES = (
    HEAD
    + """
class LayerNorm2d(nn.Module):
    def __init__(self, num_channels, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_channels))
        self.bias = nn.Parameter(torch.zeros(num_channels))
        self.eps = eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]
"""
)

NETWORK = (
    HEAD
    + """
class FeedForward(nn.Module):
    def __init__(self, channels, filter_channels, p_dropout=0.0):
        super().__init__()
        self.conv_1 = nn.Conv1d(channels, filter_channels, 1)
        self.conv_2 = nn.Conv1d(filter_channels, channels, 1)
        self.drop = nn.Dropout(p_dropout)

    def forward(self, x):
        return self.conv_2(self.drop(torch.relu(self.conv_1(x))))
"""
)

ATTENTION = (
    HEAD
    + """
class MultiHeadAttention(nn.Module):
    def __init__(self, channels, n_heads, p_dropout=0.0):
        super().__init__()
        assert channels % n_heads == 0
        self.n_heads = n_heads
        self.conv_q = nn.Conv1d(channels, channels, 1)
        self.conv_k = nn.Conv1d(channels, channels, 1)
        self.conv_v = nn.Conv1d(channels, channels, 1)
        self.conv_o = nn.Conv1d(channels, channels, 1)
        self.drop = nn.Dropout(p_dropout)

    def forward(self, x, attn_mask=None):
        b, d, t = x.shape
        q, k, v = (
            one(x).view(b, self.n_heads, -1, t).transpose(2, 3)
            for one in (self.conv_q, self.conv_k, self.conv_v)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.n_heads)
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask == 0, -1e9)
        y = self.drop(scores.softmax(-1)) @ v
        return self.conv_o(y.transpose(2, 3).reshape(b, d, t))
"""
)

GRID = (
    HEAD
    + """
class Attention(nn.Module):
    def __init__(self, dim, num_heads=8, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, h, w, _ = x.shape
        qkv = self.qkv(x).reshape(b, h * w, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.reshape(3, b * self.num_heads, h * w, -1).unbind(0)
        attn = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1)
        x = (attn @ v).view(b, self.num_heads, h, w, -1).permute(0, 2, 3, 1, 4)
        return self.proj(x.reshape(b, h, w, -1))
"""
)

POSITIONS = (
    HEAD
    + """
class PositionalEncodingPermute1D(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.channels = 2 * math.ceil(channels / 2)
        steps = torch.arange(0, self.channels, 2).float() / self.channels
        self.register_buffer("inv_freq", 1.0 / (10000**steps))

    def forward(self, tensor):
        batch, width, length = tensor.shape
        place = torch.arange(length, dtype=self.inv_freq.dtype)
        angles = place[:, None] * self.inv_freq
        rows = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2, -1)
        return rows[None, :, :width].repeat(batch, 1, 1).permute(0, 2, 1)
"""
)

SOUND = [
    ("LayerNorm", NORM, "layer_norm", "parameters-trained"),
    ("LayerNorm2d", NORM_OF_IMAGES, "layer_norm", "parameters-trained"),
    ("FeedForward", NETWORK, "feed_forward", "position-wise"),
    ("MultiHeadAttention", ATTENTION, "multi_head_attention", "masked-keys-ignored"),
    ("Attention", GRID, "multi_head_attention", "query-order"),
    ("PositionalEncodingPermute1D", POSITIONS, "positional_encoding", "prefix"),
]


@pytest.mark.parametrize(("name", "source", "component", "clause"), SOUND)
def test_code_of_series_and_images_is_read(
    tmp_path: Path, name: str, source: str, component: str, clause: str
) -> None:
    backend = adapted(tmp_path, name, source)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, f"{component}.formula", f"{component}.{clause}") == []


@pytest.mark.proof
@share(4, rest=1)
@pytest.mark.parametrize(
    ("number", "right", "wrong"),
    [
        (0, "torch.rsqrt(variance + self.eps)", "torch.reciprocal(variance + self.eps)"),
        (0, "+ self.beta", "- self.beta"),
        (2, "torch.relu(self.conv_1(x))", "self.conv_1(x)"),
        (2, "torch.relu(self.conv_1(x))", "torch.relu(self.conv_1(x - x.mean(2, keepdim=True)))"),
        (3, "math.sqrt(d // self.n_heads)", "math.sqrt(d)"),
        (3, "scores.softmax(-1)", "scores.softmax(-2)"),
        (3, ".transpose(2, 3).reshape(b, d, t)", ".reshape(b, d, t)"),
        (3, "== 0, -1e9", "== 0, -1.0"),
        (4, "* self.scale", "* self.scale**2"),
        (4, "softmax(dim=-1)", "softmax(dim=-2)"),
        (5, "10000**steps", "1000**steps"),
        (5, "(angles.sin(), angles.cos())", "(angles.cos(), angles.sin())"),
        (5, "place[:, None] * self.inv_freq", "place[:, None] * self.inv_freq.flip(0)"),
    ],
)
def test_mistake_in_code_of_series_and_images_does_not_pass(
    tmp_path: Path, number: int, right: str, wrong: str
) -> None:
    name, source, component, _ = SOUND[number]
    clauses = [
        f"{component}.{one}" for one in ("formula", *["masked-keys-ignored"] * (number == 3))
    ]
    assert asked_or_broken(tmp_path, name, source, right, wrong, *clauses)


@pytest.mark.parametrize("axis", ["(1, 2)", "2"])
def test_norm_over_other_axes_of_a_series_is_a_question(tmp_path: Path, axis: str) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "LayerNorm", NORM.replace("mean(1,", f"mean({axis},"))


ALONG_THE_FIRST_AXIS = GRID.replace("b, h, w, _ = x.shape", "b, h, w, c = x.shape").replace(
    "self.qkv(x).reshape(b, h * w,",
    "self.qkv(x.transpose(1, 2).reshape(b * w, h, c)).reshape(-1, h,",
)


def test_attention_along_another_axis_is_a_question(tmp_path: Path) -> None:
    source = ALONG_THE_FIRST_AXIS.replace(
        "reshape(3, b * self.num_heads, h * w, -1)", "reshape(3, -1, h, c // self.num_heads)"
    ).replace(
        "x = (attn @ v).view(b, self.num_heads, h, w, -1).permute(0, 2, 3, 1, 4)",
        "x = (attn @ v).view(b, w, self.num_heads, h, -1).permute(0, 3, 1, 2, 4)",
    )
    with pytest.raises(Unclear, match="with one row"):
        adapted(tmp_path, "Attention", source)


AVERAGED = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.outer(self.inner(x).relu()AVERAGE)
"""


def test_an_axis_of_length_1_hides_no_average(tmp_path: Path) -> None:
    assert adapted(tmp_path, "FeedForward", AVERAGED.replace("AVERAGE", ""))
    with pytest.raises(Unclear, match=r"with one row: its result holds no tensor of shape"):
        adapted(tmp_path, "FeedForward", AVERAGED.replace("AVERAGE", ".mean(1, True)"))
