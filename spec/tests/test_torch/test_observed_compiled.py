"""Compiled code, which torch does not let run inside an observation, runs after it."""

import warnings

import pytest
import torch
from torch.nn.attention import flex_attention

from attentest_spec.torch.flops import FlopCounter


def attend(length: int) -> torch.Tensor:
    x = torch.ones(1, 1, length, 2, dtype=torch.float64)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is not compiled as a whole
        return flex_attention.flex_attention(x, x, x)


def test_flex_attention_runs_after_an_observation():
    attend(3)
    with FlopCounter(), pytest.raises(NotImplementedError):
        attend(4)
    assert (attend(5) == 1).all()
