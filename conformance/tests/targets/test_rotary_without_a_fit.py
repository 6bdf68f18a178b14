"""Rotary positions that fit no option: the usual ones are meant, and the line is the right one."""

from pathlib import Path

import pytest
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

HALVES = """
import torch


def cache(width, length, theta=10000.0):
    rates = 1.0 / theta ** (torch.arange(0, width, 2).float() / width)
    angles = torch.outer(torch.arange(length).float(), rates)
    every = torch.cat([angles, angles], dim=-1)
    return every.cos(), every.sin()


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


def apply_rope(x, cos, sin):
    return x * cos + rotate_half(x) * sin
"""

ADJACENT = """
import torch


def cache(width, length, theta=10000.0):
    rates = 1.0 / theta ** (torch.arange(0, width, 2).double() / width)
    angles = torch.outer(torch.arange(length).double(), rates)
    return angles.cos(), angles.sin()


def apply_rope(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    first = a * cos - b * sin
    second = b * cos + a * sin
    return torch.stack([first, second], dim=-1).flatten(-2)
"""

USUAL = {"rotary_base": "10000", "rotary_width": "whole", "rotary_direction": "forward"}


@pytest.mark.parametrize(
    ("code", "pairs", "change", "computed"),
    [
        (HALVES, "halves", ("[-b, a]", "[-a, b]"), "(-a, b) for each pair"),
        (
            ADJACENT,
            "adjacent",
            ("b * cos + a * sin", "b * cos - a * sin"),
            "b cos - a sin",
        ),
    ],
)
def test_mistake_does_not_change_what_is_meant(
    tmp_path: Path, code: str, pairs: str, change: tuple[str, str], computed: str
) -> None:
    backend = adapted(tmp_path, "apply_rope", edited(code, change))
    meant = {**USUAL, "rotary_pairs": pairs}
    assert {name: backend.choices.get(name, USUAL.get(name)) for name in meant} == meant
    location = judge(Bench(backend, shrink=False), "rotary.formula").location
    assert location is not None
    assert change[1] in location.code
    assert location.computed == computed
    assert location.confirmed


def test_base_that_code_has_is_kept_with_a_mistake(tmp_path: Path) -> None:
    code = edited(HALVES, ("10000.0", "500000.0"), ("[-b, a]", "[-a, b]"))
    backend = adapted(tmp_path, "apply_rope", code)
    assert backend.choices["rotary_base"] == 500000.0
    assert backend.choices["rotary_pairs"] == "halves"


@pytest.mark.parametrize("code", [HALVES, ADJACENT])
def test_right_code_conforms(tmp_path: Path, code: str) -> None:
    backend = adapted(tmp_path, "apply_rope", code)
    assert not judge(Bench(backend, shrink=False), "rotary.formula").status.broken
