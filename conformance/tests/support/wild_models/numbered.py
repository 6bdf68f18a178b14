"""Layers as numbered attributes, one norm module for every place, tied in all three."""

import torch
from torch import nn


class Projected(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x, y, keep):
        b, n, d = x.shape
        q = self.wq(x).reshape(b, n, self.h, d // self.h)
        k = self.wk(y).reshape(b, -1, self.h, d // self.h)
        v = self.wv(y).reshape(b, -1, self.h, d // self.h)
        s = torch.einsum("bnhe,bmhe->bhnm", q, k) / (d // self.h) ** 0.5
        a = s.masked_fill(~keep, -1e30).softmax(-1)
        return self.wo(torch.einsum("bhnm,bmhe->bnhe", a, v).reshape(b, n, d))


class EncoderBlock(nn.Module):
    def __init__(self, d, h, f):
        super().__init__()
        self.self_attn, self.norm1, self.norm2 = Projected(d, h), nn.LayerNorm(d), nn.LayerNorm(d)
        self.lin1, self.lin2 = nn.Linear(d, f), nn.Linear(f, d)

    def forward(self, x, keep):
        x = self.norm1(x + self.self_attn(x, x, keep))
        return self.norm2(x + self.lin2(self.lin1(x).relu()))


class DecoderBlock(nn.Module):
    def __init__(self, d, h, f):
        super().__init__()
        self.self_attn, self.cross_attn = Projected(d, h), Projected(d, h)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d) for _ in range(3))
        self.lin1, self.lin2 = nn.Linear(d, f), nn.Linear(f, d)

    def forward(self, x, memory, keep, memory_keep):
        x = self.norm1(x + self.self_attn(x, x, keep))
        x = self.norm2(x + self.cross_attn(x, memory, memory_keep))
        return self.norm3(x + self.lin2(self.lin1(x).relu()))


class NMTModel(nn.Module):
    def __init__(
        self, vocab_size, dim, n_heads, ffn_dim, n_layers, max_positions, pad_src, pad_tgt
    ):
        super().__init__()
        self.pad_src, self.pad_tgt, self.n_layers, self.dim = pad_src, pad_tgt, n_layers, dim
        self.embed = nn.Embedding(vocab_size, dim)
        place = torch.arange(max_positions, dtype=torch.float64)[:, None]
        rate = 10000 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        half = torch.cat([torch.sin(place * rate), torch.cos(place * rate)], 1)
        self.register_buffer("table", half, persistent=False)
        for n in range(n_layers):
            setattr(self, f"enc_{n}", EncoderBlock(dim, n_heads, ffn_dim))
            setattr(self, f"dec_{n}", DecoderBlock(dim, n_heads, ffn_dim))

    def embedded(self, ids):
        return self.embed(ids) * self.dim**0.5 + self.table[: ids.size(1)].to(self.embed.weight)

    def forward(self, source_ids, target_ids):
        keep = (source_ids != self.pad_src)[:, None, None]
        n = target_ids.size(1)
        own = torch.ones(n, n, dtype=torch.bool, device=keep.device).tril()
        own = own & (target_ids != self.pad_tgt)[:, None, None]
        x = self.embedded(source_ids)
        for i in range(self.n_layers):
            x = getattr(self, f"enc_{i}")(x, keep)
        y = self.embedded(target_ids)
        for i in range(self.n_layers):
            y = getattr(self, f"dec_{i}")(y, x, own, keep)
        return torch.nn.functional.linear(y, self.embed.weight).log_softmax(-1)
