"""Rotary classes that return angles together with a scale, and numbers of positions called t."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))

    def forward(self, t, offset=0):
        freqs = t.type_as(self.inv_freq)[:, None] * self.inv_freq
        return torch.stack((freqs, freqs), dim=-1).flatten(-2), 1.0


def rotate_half(x):
    x = x.unflatten(-1, (-1, 2))
    return torch.stack((-x[..., 1], x[..., 0]), dim=-1).flatten(-2)


def apply_rotary_pos_emb(t, freqs, scale=1):
    freqs = freqs[-t.shape[-2]:]
    turned = t * freqs.cos() * scale + rotate_half(t) * freqs.sin() * scale
    return turned.type(t.dtype)
"""

SCALED = (
    CODE.replace("forward(self, t, offset=0)", "forward(self, x)")
    .replace("t.type_as(self.inv_freq)[:, None]", "torch.arange(x.shape[-2]).float()[:, None]")
    .replace(", 1.0\n", ", torch.ones(1)\n")
    .replace("scale=1):", "scale=1):\n    scale = scale if scale.ndim == 1 else scale[-1]")
)

IN_FULL = CODE.replace(
    "        freqs = t.type_as(self.inv_freq)[:, None] * self.inv_freq\n",
    "        with torch.autocast(t.device.type, enabled=False):\n"
    "            freqs = t.type_as(self.inv_freq)[:, None] * self.inv_freq\n",
)
BEHIND = IN_FULL.replace(
    "        self.register_buffer",
    "        self.places = torch.arange(64.0)\n        self.register_buffer",
).replace("t.type_as(self.inv_freq)", "self.places[t].type_as(self.inv_freq)")

CLAUSES = ("rotary.formula", "rotary.norm-kept")


@pytest.mark.parametrize("source", [CODE, SCALED])
def test_angles_with_a_scale_of_one_are_read(tmp_path: Path, source: str) -> None:
    assert broken(adapted(tmp_path, "RotaryEmbedding", source), *CLAUSES) == []


def test_positions_called_t_are_seen_to_be_positions(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "RotaryEmbedding", CODE)
    assert broken(backend, "rotary.formula", "rotary.positions-given") == []


def test_autocast_for_the_device_of_the_input_is_no_violation(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "RotaryEmbedding", IN_FULL), "rotary.follows-moves") == []


def test_table_that_is_left_behind_is_seen_under_autocast(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "RotaryEmbedding", BEHIND)
    assert "places" in broken(backend, "rotary.follows-moves")[0]


@share(2)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("flatten(-2), 1.0", "flatten(-2), 1.5"),
        ("freqs.sin() * scale", "freqs.cos() * scale"),
        ("torch.stack((-x[..., 1], x[..., 0])", "torch.stack((x[..., 1], x[..., 0])"),
        ("t.type_as(self.inv_freq)", "t.flip(0).type_as(self.inv_freq)"),
    ],
)
def test_mistake_in_angles_with_a_scale_does_not_pass(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, "RotaryEmbedding", CODE, right, wrong, *CLAUSES)


def test_angles_without_what_applies_them_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "RotaryEmbedding", CODE.partition("def rotate_half")[0])


NAMED_OTHERWISE = SCALED.replace("RotaryEmbedding", "SinusoidalEmbeddings")


def test_angles_by_another_name_are_a_question_with_the_option_that_works(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"--as rotary .*the numbers are those of the"):
        adapted(tmp_path, "SinusoidalEmbeddings", NAMED_OTHERWISE)
    backend = adapted(tmp_path, "SinusoidalEmbeddings", NAMED_OTHERWISE, component="rotary")
    assert broken(backend, *CLAUSES) == []


def test_option_is_not_said_to_work_for_mistaken_angles(tmp_path: Path) -> None:
    mistaken = NAMED_OTHERWISE.replace("freqs.sin() * scale", "freqs.cos() * scale")
    with pytest.raises(Unclear) as found:
        adapted(tmp_path, "SinusoidalEmbeddings", mistaken)
    assert "--as rotary (" not in str(found.value)
