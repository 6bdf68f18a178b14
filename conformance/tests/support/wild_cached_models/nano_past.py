"""Learned positions, one packed projection, a tuple of keys and values for each block."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F  # noqa: N812


@dataclass
class GPTConfig:
    block_size: int = 1024
    vocab_size: int = 50304
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    dropout: float = 0.0


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.n_head = config.n_head

    def forward(self, x, layer_past=None):
        b, t, c = x.size()
        q, k, v = self.c_attn(x).split(c, dim=2)
        q, k, v = (
            one.view(b, t, self.n_head, c // self.n_head).transpose(1, 2) for one in (q, k, v)
        )
        if layer_past is not None:
            k = torch.cat((layer_past[0], k), dim=2)
            v = torch.cat((layer_past[1], v), dim=2)
        present = (k, v)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        total = k.size(2)
        keep = torch.ones(total, total, dtype=torch.bool, device=x.device).tril()[total - t : total]
        att = att.masked_fill(~keep, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c)), present


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd)
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.c_out = nn.Linear(4 * config.n_embd, config.n_embd)

    def forward(self, x, layer_past=None):
        attended, present = self.attn(self.ln_1(x), layer_past)
        x = x + attended
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)))), present


class GPT(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.block_size, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, past_key_values=None):
        start = 0 if past_key_values is None else past_key_values[0][0].size(2)
        pos = torch.arange(start, start + idx.size(1), device=idx.device)
        if start + idx.size(1) > self.config.block_size:
            raise ValueError(f"{start + idx.size(1)} tokens, of {self.config.block_size}")
        x = self.wte(idx) + self.wpe(pos)
        presents = []
        for i, block in enumerate(self.h):
            x, present = block(x, None if past_key_values is None else past_key_values[i])
            presents.append(present)
        return self.lm_head(self.ln_f(x)), tuple(presents)
