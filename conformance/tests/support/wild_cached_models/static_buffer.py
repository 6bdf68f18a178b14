"""A buffer of the greatest length for all blocks, which a method makes and slots are written of."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class Block(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model} columns cannot be shared by {n_heads} heads")
        self.n_heads = n_heads
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model, bias=False)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, kv=None, start_pos=0):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        if kv is not None:
            keys, values = kv
            keys[:, :, start_pos : start_pos + t] = k
            values[:, :, start_pos : start_pos + t] = v
            k, v = keys[:, :, : start_pos + t], values[:, :, : start_pos + t]
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        query = torch.arange(start_pos, start_pos + t, device=x.device)[:, None]
        key = torch.arange(k.shape[2], device=x.device)[None]
        weights = scores.masked_fill(key > query, float("-inf")).softmax(-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class DecoderLM(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, d_model)
        self.pos = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList([Block(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)
        self.max_len, self.n_heads = max_len, n_heads

    def make_cache(self, batch_size):
        like = self.head.weight
        width = like.shape[1] // self.n_heads
        shape = batch_size, self.n_heads, self.max_len, width
        return [(like.new_zeros(shape), like.new_zeros(shape)) for _ in self.blocks]

    def forward(self, ids, cache=None, start_pos=0):
        if start_pos + ids.shape[1] > self.max_len:
            raise ValueError(f"more than {self.max_len} tokens")
        places = torch.arange(start_pos, start_pos + ids.shape[1], device=ids.device)
        x = self.tok(ids) + self.pos(places)
        for i, block in enumerate(self.blocks):
            x = block(x, None if cache is None else cache[i], start_pos)
        return self.head(self.norm(x))
