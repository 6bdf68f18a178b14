"""Functions of a dictionary of parameters, whose heads have axes of their own."""

import torch
from torch import nn
from torch.nn.functional import silu


def init_params(vocab, d, heads, kv, ff, layers):
    e = d // heads

    def r(*s):
        return nn.Parameter(torch.randn(*s) * 0.02)

    p = nn.ParameterDict({"emb": r(vocab, d), "final": nn.Parameter(torch.ones(d))})
    for i in range(layers):
        p[f"l{i}_an"] = nn.Parameter(torch.ones(d))
        p[f"l{i}_fn"] = nn.Parameter(torch.ones(d))
        p[f"l{i}_wq"], p[f"l{i}_wk"] = r(d, heads, e), r(d, kv, e)
        p[f"l{i}_wv"], p[f"l{i}_wo"] = r(d, kv, e), r(heads, e, d)
        p[f"l{i}_w1"], p[f"l{i}_w3"], p[f"l{i}_w2"] = r(d, ff), r(d, ff), r(ff, d)
    return p


def rms(x, g):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g


def rope(x):
    t, e = x.shape[1], x.shape[-1]
    f = 10000.0 ** (-torch.arange(0, e, 2, dtype=torch.float64) / e)
    a = torch.arange(t, dtype=torch.float64)[:, None] * f
    c, s = a.cos().to(x.dtype)[:, None], a.sin().to(x.dtype)[:, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * c - odd * s, even * s + odd * c), -1).flatten(-2)


def attend(p, i, x):
    q = rope(torch.einsum("btd,dhe->bthe", x, p[f"l{i}_wq"]))
    k = rope(torch.einsum("btd,dge->btge", x, p[f"l{i}_wk"]))
    v = torch.einsum("btd,dge->btge", x, p[f"l{i}_wv"])
    b, t, h, e = q.shape
    g = k.shape[2]
    q = q.view(b, t, g, h // g, e)
    s = torch.einsum("btgre,bsge->bgrts", q, k) * e**-0.5
    s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
    o = torch.einsum("bgrts,bsge->btgre", s.softmax(-1), v).reshape(b, t, h, e)
    return torch.einsum("bthe,hed->btd", o, p[f"l{i}_wo"])


def forward(p, tokens, layers):
    x = p["emb"][tokens]
    for i in range(layers):
        x = x + attend(p, i, rms(x, p[f"l{i}_an"]))
        h = rms(x, p[f"l{i}_fn"])
        x = x + (silu(h @ p[f"l{i}_w1"]) * (h @ p[f"l{i}_w3"])) @ p[f"l{i}_w2"]
    return rms(x, p["final"]) @ p["emb"].T


class FunctionalLM(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_kv_heads, d_ff, n_layers):
        super().__init__()
        self.p = init_params(vocab_size, d_model, n_heads, n_kv_heads, d_ff, n_layers)
        self.n_layers = n_layers

    def forward(self, tokens):
        return forward(self.p, tokens, self.n_layers)
