"""One vocabulary and one pad id for both sides, and float masks that are multiplied and added."""

import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, emb, heads):
        super().__init__()
        self.tokeys, self.toqueries = (
            nn.Linear(emb, emb, bias=False),
            nn.Linear(emb, emb, bias=False),
        )
        self.tovalues, self.unifyheads = nn.Linear(emb, emb, bias=False), nn.Linear(emb, emb)
        self.heads = heads

    def forward(self, x, y, visible):
        b, t, e = x.size()
        s = e // self.heads

        def folded(z):
            return z.view(b, -1, self.heads, s).transpose(1, 2).reshape(b * self.heads, -1, s)

        queries, keys, values = (
            folded(self.toqueries(x)),
            folded(self.tokeys(y)),
            folded(self.tovalues(y)),
        )
        dot = torch.bmm(queries, keys.transpose(1, 2)) / s**0.5
        hidden = (1 - visible.repeat_interleave(self.heads, 0)) * -1e9
        out = torch.bmm((dot + hidden).softmax(2), values).view(b, self.heads, t, s)
        return self.unifyheads(out.transpose(1, 2).reshape(b, t, e))


class Block(nn.Module):
    def __init__(self, emb, heads, hidden, crossed):
        super().__init__()
        self.attention, self.norm1 = Heads(emb, heads), nn.LayerNorm(emb)
        if crossed:
            self.cross, self.norm_cross = Heads(emb, heads), nn.LayerNorm(emb)
        self.ff = nn.Sequential(nn.Linear(emb, hidden), nn.ReLU(), nn.Linear(hidden, emb))
        self.norm2 = nn.LayerNorm(emb)

    def forward(self, x, visible, memory=None, memory_visible=None):
        x = self.norm1(self.attention(x, x, visible) + x)
        if memory is not None:
            x = self.norm_cross(self.cross(x, memory, memory_visible) + x)
        return self.norm2(self.ff(x) + x)


class Transformer(nn.Module):
    def __init__(self, emb, heads, depth, hidden, seq_length, num_tokens, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        self.token_embedding = nn.Embedding(num_tokens, emb)
        self.pos_embedding = nn.Embedding(seq_length, emb)
        self.target_embedding = nn.Embedding(num_tokens, emb)
        self.target_pos_embedding = nn.Embedding(seq_length, emb)
        self.eblocks = nn.ModuleList(Block(emb, heads, hidden, False) for _ in range(depth))
        self.dblocks = nn.ModuleList(Block(emb, heads, hidden, True) for _ in range(depth))
        self.toprobs = nn.Linear(emb, num_tokens)

    def forward(self, src, tgt):
        dtype = self.toprobs.weight.dtype
        real, t = (src != self.pad_id).to(dtype), tgt.size(1)
        past = torch.ones(t, t, dtype=dtype, device=src.device).tril()
        own = (tgt != self.pad_id).to(dtype)[:, None, :] * past
        wide, narrow = (
            real[:, None, :].expand(-1, t, -1),
            real[:, None, :].expand(-1, src.size(1), -1),
        )
        x = self.token_embedding(src) + self.pos_embedding.weight[: src.size(1)]
        for block in self.eblocks:
            x = block(x, narrow)
        y = self.target_embedding(tgt) + self.target_pos_embedding.weight[:t]
        for block in self.dblocks:
            y = block(y, own, x, wide)
        return self.toprobs(y)
