"""Functions that turn queries and keys together, one of them by mistake in another way."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

CODE = """
import torch


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / theta ** (torch.arange(0, dim, 2)[: dim // 2].float() / dim)
    angles = torch.outer(torch.arange(end).float(), freqs)
    return torch.polar(torch.ones_like(angles), angles)


def apply_rotary_emb(xq, xk, freqs_cis):
    freqs_cis = freqs_cis[None, :, None, :]
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return xq_out.type_as(xq), xk_out.type_as(xk)
"""
MISTAKES = [
    ("xk_ * freqs_cis", "xk_ * freqs_cis.conj()"),
    ("xq_ * freqs_cis", "xq_ * freqs_cis.conj()"),
    ("view_as_real(xk_", "view_as_real(xq_ * freqs_cis"),
]


def test_right_ones_fit(tmp_path: Path) -> None:
    assert adapted(tmp_path, "apply_rotary_emb", CODE).fits


@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_result_that_is_right_says_the_convention(tmp_path: Path, right: str, wrong: str) -> None:
    backend = adapted(tmp_path, "apply_rotary_emb", CODE.replace(right, wrong))
    assert backend.choices["rotary_direction"] == "forward"
    assert backend.choices["rotary_width"] == "whole"
    assert broken(backend, "rotary.formula")


@pytest.mark.proof
def test_line_is_that_of_the_wrong_result(tmp_path: Path) -> None:
    right, wrong = MISTAKES[0]
    backend = adapted(tmp_path, "apply_rotary_emb", CODE.replace(right, wrong))
    verdict = judge(Bench(backend, shrink=False, effort=0.2), "rotary.formula")
    assert verdict.location is not None
    assert verdict.location.line == CODE[: CODE.index(right)].count("\n") + 1
