"""Blocks that take a pair or nothing and return one; a list of them in a dictionary of results."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        assert width % heads == 0
        self.heads = heads
        self.q, self.k = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.v, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x, kv):
        b, n, _ = x.shape
        q, k, v = (one(x).view(b, n, self.heads, -1) for one in (self.q, self.k, self.v))
        before = kv["k"].shape[1] if kv else 0
        if kv:
            k, v = torch.cat((kv["k"], k), 1), torch.cat((kv["v"], v), 1)
        causal = torch.full((n, before + n), float("-inf"), dtype=x.dtype, device=x.device)
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal.triu(before + 1)
        )
        return self.o(y.transpose(1, 2).flatten(2)), {"k": k, "v": v}


class LM(nn.Module):
    def __init__(self, vocab_size, width, heads, depth, max_len):
        super().__init__()
        self.embed, self.place = nn.Embedding(vocab_size, width), nn.Embedding(max_len, width)
        self.attentions = nn.ModuleList([SelfAttention(width, heads) for _ in range(depth)])
        self.ups = nn.ModuleList([nn.Linear(width, 4 * width) for _ in range(depth)])
        self.downs = nn.ModuleList([nn.Linear(4 * width, width) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * depth)])
        self.final = nn.LayerNorm(width)
        self.unembed = nn.Linear(width, vocab_size, bias=False)

    def forward(self, tokens, kv_cache=None, return_cache=False):
        kv_cache = kv_cache or [None] * len(self.attentions)
        first = 0 if kv_cache[0] is None else kv_cache[0]["k"].shape[1]
        n = tokens.shape[1]
        x = self.embed(tokens) + self.place(torch.arange(first, first + n, device=tokens.device))
        kept = []
        for i, attention in enumerate(self.attentions):
            y, kv = attention(self.norms[2 * i](x), kv_cache[i])
            kept.append(kv)
            x = x + y
            x = x + self.downs[i](F.silu(self.ups[i](self.norms[2 * i + 1](x))))
        logits = self.unembed(self.final(x))
        return {"logits": logits, "kv_cache": kept} if return_cache else {"logits": logits}
