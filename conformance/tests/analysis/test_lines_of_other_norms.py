"""Lines of a norm of another sublayer, in a whole model whose norms are of a class of its file."""

from pathlib import Path

import pytest
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status

CODE = """
import math

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(features))
        self.beta = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        out = centred / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + self.eps)
        return self.gamma * out + self.beta


class Attention(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        self.h = h
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def forward(self, q, k, v, mask):
        q, k, v = self.split(self.w_q(q)), self.split(self.w_k(k)), self.split(self.w_v(v))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(mask == 0, -1e9).softmax(-1)
        return self.w_o((weights @ v).transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff):
        super().__init__()
        self.attention, self.norm1, self.norm2 = Attention(d_model, h), Norm(d_model), Norm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, x, x, mask))
        return self.norm2(x + self.ffn(x))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff):
        super().__init__()
        self.attention, self.cross = Attention(d_model, h), Attention(d_model, h)
        self.norm1, self.norm2, self.norm3 = Norm(d_model), Norm(d_model), Norm(d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x, memory, src_mask, tgt_mask):
        x = self.norm1(x + self.attention(x, x, x, tgt_mask))
        x = self.norm2(x + self.cross(x, memory, memory, src_mask))
        return self.norm3(x + self.ffn(x))


class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, h, d_ff, n_layers, pad_idx):
        super().__init__()
        self.pad_idx = pad_idx
        self.src, self.tgt = nn.Embedding(src_vocab, d_model), nn.Embedding(tgt_vocab, d_model)
        self.encoder = nn.ModuleList(EncoderLayer(d_model, h, d_ff) for _ in range(n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(d_model, h, d_ff) for _ in range(n_layers))
        self.linear = nn.Linear(d_model, tgt_vocab)

    def forward(self, src, tgt):
        src_mask = (src != self.pad_idx)[:, None, None]
        order = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()
        tgt_mask = (tgt != self.pad_idx)[:, None, None] & order
        memory, x = self.src(src), self.tgt(tgt)
        for layer in self.encoder:
            memory = layer(memory, src_mask)
        for layer in self.decoder:
            x = layer(x, memory, src_mask, tgt_mask)
        return self.linear(x)
"""


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("return self.norm3(x + self.ffn(x))", "return self.norm2(x + self.ffn(x))"),
        ("x = self.norm2(x + self.cross", "x = self.norm1(x + self.cross"),
    ],
)
def test_the_norm_of_another_sublayer_is_named(tmp_path: Path, right: str, wrong: str) -> None:
    backend = adapted(tmp_path, "Transformer", edited(CODE, (right, wrong)))
    verdict = judge(Bench(backend, shrink=False), "model.formula")
    assert verdict.status is Status.VIOLATION
    assert verdict.location is not None
    assert verdict.location.code.startswith(wrong)
