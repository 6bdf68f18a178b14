"""Numbers of code that conforms, and that its author may not have meant."""

import pytest
import torch
from torch import nn

import attentest


class Norm(nn.Module):
    def __init__(self, d_model, unbiased):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.unbiased = unbiased

    def forward(self, x):
        variance = x.var(-1, unbiased=self.unbiased, keepdim=True)
        off = x - x.mean(-1, keepdim=True)
        return self.gain * off / (variance + 1e-5).sqrt() + self.bias


class Attention(nn.Module):
    """Attention to earlier positions, with linear biases."""

    def __init__(self, d_model, n_heads, sign):
        super().__init__()
        self.n_heads, self.sign = n_heads, sign
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
        slopes = 0.5 ** (8 * torch.arange(1, self.n_heads + 1) / self.n_heads)
        steps = torch.arange(x.shape[1])
        distances = self.sign * (steps[None] - steps[:, None])
        alibi = slopes[:, None, None] * distances.clamp(max=0)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + alibi.to(x.dtype)
        hidden = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize(("unbiased", "said"), [(False, False), (True, True)])
def test_variance_that_is_not_that_of_torch_is_an_assumption(unbiased, said):
    read = attentest.adapted(Norm, component="layer_norm", given={"unbiased": unbiased})
    assert any("norm_variance=unbiased" in one for one in read.assumed) is said


@pytest.mark.parametrize(("sign", "said"), [(1, False), (-1, True)])
def test_biases_of_later_positions_alone_are_an_assumption(sign, said):
    read = attentest.adapted(Attention, component="multi_head_attention", given={"sign": sign})
    assert any("nothing is added to its scores" in one for one in read.assumed) is said
