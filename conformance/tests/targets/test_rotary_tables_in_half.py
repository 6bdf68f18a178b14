"""Rotary positions whose tables are rounded where a module is cast: an assumption, and no more."""

import pytest
import torch

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.resolve import load

torch.set_num_threads(1)

CODE = '''import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    """x: (B, H, T, D)"""

    def __init__(self, dim, base=10000):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))

    def forward(self, x, position_ids):
        angles = position_ids[:, None, :, None].float() * self.inv_freq.float()
        table = torch.cat((angles, angles), -1)
        a, b = x.chunk(2, dim=-1)
        turned = torch.cat((-b, a), dim=-1)
        return x * table.cos().to(x.dtype) + turned * table.sin().to(x.dtype)
'''
KEPT = "assumed that its fixed arrays stay in float32"


def read(folder, code, **reading):
    file = folder / "turned.py"
    file.write_text(code)
    return load(f"{file}:RotaryEmbedding", reading or None)


def half_precision(backend):
    return judge(Bench.for_status(backend, effort=0.3), "rotary.half-precision").status


def test_tables_that_a_cast_rounds_are_an_assumption(tmp_path):
    backend = read(tmp_path, CODE)
    assert any(one.startswith(KEPT) for one in backend.assumed)
    assert half_precision(backend) == "pass"


def test_a_frozen_parameter_that_a_cast_rounds_is_an_assumption(tmp_path):
    made = 'self.register_buffer("inv_freq", '
    frozen = CODE.replace(made, "self.inv_freq = nn.Parameter(requires_grad=False, data=")
    backend = read(tmp_path, frozen)
    assert any(one.startswith(KEPT) for one in backend.assumed)
    assert half_precision(backend) == "pass"
    rounded = frozen.replace("None].float()", "None].to(x.dtype)")
    assert half_precision(read(tmp_path, rounded)) == "violation"


def test_strict_reports_tables_that_a_cast_rounds(tmp_path):
    backend = read(tmp_path, CODE, strict=True)
    assert not any(one.startswith(KEPT) for one in backend.assumed)
    assert half_precision(backend) == "violation"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("None].float()", "None].to(x.dtype)"),
        ("table.cos().to(x.dtype)", "table.to(x.dtype).cos()"),
    ],
)
def test_positions_or_angles_in_half_precision_are_reported(right, wrong, tmp_path):
    assert CODE.count(right) == 1
    assert half_precision(read(tmp_path, CODE.replace(right, wrong))) == "violation"


OF_A_PRECISION = """
import torch


def precompute(seq_len: int, n_elem: int, base: int = 10000, dtype=torch.bfloat16, scaling=None):
    rates = 1.0 / (base ** (torch.arange(0, n_elem, 2).float() / n_elem))
    angles = torch.outer(torch.arange(seq_len), rates)
    return torch.stack([angles.cos(), angles.sin()], dim=-1).to(dtype)


def apply_rotary_emb(x, freqs_cis):
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = freqs_cis.view(1, x.size(1), 1, -1, 2).unbind(-1)
    turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1)
    return turned.flatten(3).type_as(x)
"""


@pytest.mark.parametrize("wrong", ["", "a * cos + b * sin"])
def test_table_that_is_made_in_half_precision_by_default_is_made_in_float32(tmp_path, wrong):
    file = tmp_path / "turned.py"
    right = "a * cos - b * sin, b * cos + a * sin"
    file.write_text(OF_A_PRECISION.replace(right[: len(wrong)], wrong) if wrong else OF_A_PRECISION)
    backend = load(f"{file}:apply_rotary_emb", None)
    assert any(one.startswith("assumed dtype=torch.float32") for one in backend.assumed)
    verdict = judge(Bench.for_status(backend, effort=0.3), "rotary.formula").status
    assert verdict == ("violation" if wrong else "pass")
