"""Rotary positions that are built with a class of settings, of which more than sizes is read."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class LateConfig:
    def __init__(
        self,
        hidden_size=64,
        num_attention_heads=4,
        max_position_embeddings=128,
        rope_parameters=None,
    ):
        self.hidden_size, self.num_attention_heads = hidden_size, num_attention_heads
        self.max_position_embeddings = max_position_embeddings
        self.rope_parameters = rope_parameters or {"rope_type": "default", "rope_theta": 2000000.0}


class LateRotaryEmbedding(nn.Module):
    def __init__(self, config: LateConfig):
        super().__init__()
        if config.rope_parameters["rope_type"] == "linear":
            self.factor = config.rope_parameters["factor"]
        else:
            self.factor = 1.0
        width = config.hidden_size // config.num_attention_heads
        columns = torch.arange(0, width, 2, dtype=torch.float64)
        base = config.rope_parameters["rope_theta"]
        self.register_buffer("speeds", base ** (-columns / width), persistent=False)

    def forward(self, x, position_ids):
        angles = position_ids[..., None].double() * self.speeds.double() / self.factor
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
"""

CLAUSES = [f"rotary.{one}" for one in ("formula", "base", "direction")]


@pytest.mark.parametrize("annotation", ["config: LateConfig", "config"])
def test_rotary_positions_are_built_with_their_settings(tmp_path: Path, annotation: str) -> None:
    code = CODE.replace("config: LateConfig", annotation)
    backend = adapted(tmp_path, "LateRotaryEmbedding", code)
    assert backend.choices["rotary_base"] == 2e6
    assert backend.choices["rotary_pairs"] == "halves"
    assert any("config is a LateConfig" in one for one in backend.understood)
    assert any("assumed that config" in one for one in backend.assumed) is (annotation == "config")
    assert broken(backend, *CLAUSES) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("torch.cat((-second, first)", "torch.cat((second, first)"),
        ("(-columns / width)", "(-columns / width / 2)"),
        ("torch.cat([angles, angles], dim=-1)", "angles.repeat_interleave(2, dim=-1)"),
    ],
    ids=["sign", "exponent", "mixed pairs"],
)
def test_a_mistake_in_rotary_positions_with_settings_is_a_violation(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in CODE
    backend = adapted(tmp_path, "LateRotaryEmbedding", CODE.replace(right, wrong))
    assert broken(backend, *CLAUSES)


@pytest.mark.parametrize(
    ("right", "other"),
    [
        ('"rope_type": "default",', '"rope_type": "linear", "factor": 4.0,'),
        ('"rope_type": "default",', '"rope_type": "default", "factor": 4.0,'),
    ],
)
def test_settings_that_scale_the_frequencies_are_a_question(
    tmp_path: Path, right: str, other: str
) -> None:
    code = CODE.replace(right, other).replace(
        '== "linear"', 'or "factor" in config.rope_parameters'
    )
    code = code.replace('["rope_type"] or', '["rope_type"] == "linear" or')
    with pytest.raises(Unclear, match="of its settings scale"):
        adapted(tmp_path, "LateRotaryEmbedding", code)


def test_a_constructor_that_fails_is_named_in_the_question(tmp_path: Path) -> None:
    code = CODE.replace("config: LateConfig", "config").replace("class LateConfig", "class Late")
    with pytest.raises(Unclear, match="building it raised AttributeError"):
        adapted(tmp_path, "LateRotaryEmbedding", code)


QUARTER = (
    CODE.replace('"rope_theta": 2000000.0', '"rope_theta": 10000.0')
    .replace(
        "width = config.hidden_size // config.num_attention_heads",
        "width = int(0.25 * (config.hidden_size // config.num_attention_heads))",
    )
    .replace(
        "    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin",
        "    return turned(q, cos, sin), turned(k, cos, sin)\n\n\n"
        "def turned(x, cos, sin):\n"
        "    front, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]\n"
        "    return torch.cat([front * cos + rotate_half(front) * sin, rest], dim=-1)",
    )
)


def test_a_quarter_of_the_columns_of_an_odd_head_may_be_rounded(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "LateRotaryEmbedding", QUARTER)
    assert backend.choices["rotary_width"] == 0.25
    assert broken(backend, "rotary.odd-width", *CLAUSES) == []


def test_a_quarter_that_reaches_the_last_column_is_a_violation(tmp_path: Path) -> None:
    code = QUARTER.replace(
        "front, rest =", "x = x.roll(1, -1) if x.shape[-1] % 2 else x\n    front, rest ="
    )
    backend = adapted(tmp_path, "LateRotaryEmbedding", code)
    assert broken(backend, "rotary.odd-width")


def test_frequencies_that_a_cast_rounds_by_little_stay_in_single_precision(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "LateRotaryEmbedding", CODE)
    assert any("its fixed arrays stay in float32" in one for one in backend.assumed)
    assert broken(backend, "rotary.half-precision") == []
