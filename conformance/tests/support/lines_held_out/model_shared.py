"""A whole model: pre-norm, learned positions, one block class, tied output, logits."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Heads(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd {n_embd} is no multiple of n_head {n_head}")
        self.n_head = n_head
        self.q = nn.Linear(n_embd, n_embd, bias=False)
        self.kv = nn.Linear(n_embd, 2 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)

    def forward(self, x, context, keep):
        b, t, c = x.size()
        q = self.q(x).view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
        k, v = self.kv(context).view(b, -1, 2, self.n_head, c // self.n_head).unbind(2)
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (c // self.n_head) ** -0.5
        att = att.masked_fill(~keep, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        y = y.transpose(1, 2).contiguous().view(b, t, c)
        return self.c_proj(y)


class Block(nn.Module):
    def __init__(self, n_embd, n_head, d_ff, crosses):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(n_embd), Heads(n_embd, n_head)
        self.crosses = crosses
        if crosses:
            self.ln_x, self.cross_attn = nn.LayerNorm(n_embd), Heads(n_embd, n_head)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.c_fc, self.mlp_proj = nn.Linear(n_embd, d_ff), nn.Linear(d_ff, n_embd)

    def forward(self, x, keep, memory=None, keep_memory=None):
        h = self.ln_1(x)
        x = x + self.attn(h, h, keep)
        if self.crosses:
            x = x + self.cross_attn(self.ln_x(x), memory, keep_memory)
        h = F.relu(self.c_fc(self.ln_2(x)))
        return x + self.mlp_proj(h)


class Transformer(nn.Module):
    def __init__(
        self,
        src_vocab_size,
        tgt_vocab_size,
        n_embd=64,
        n_head=4,
        n_layer=2,
        d_ff=256,
        block_size=64,
        src_pad=0,
        tgt_pad=0,
    ):
        super().__init__()
        if min(src_vocab_size, tgt_vocab_size, n_embd, n_head, n_layer, d_ff, block_size) < 1:
            raise ValueError(
                f"below 1: {src_vocab_size=}, {tgt_vocab_size=}, {n_embd=}, {n_head=}, "
                f"{n_layer=}, {d_ff=}, {block_size=}"
            )
        self.src_pad, self.tgt_pad, self.block_size = src_pad, tgt_pad, block_size
        self.src_wte = nn.Embedding(src_vocab_size, n_embd)
        self.tgt_wte = nn.Embedding(tgt_vocab_size, n_embd)
        self.src_wpe = nn.Embedding(block_size, n_embd)
        self.tgt_wpe = nn.Embedding(block_size, n_embd)
        sizes = n_embd, n_head, d_ff
        self.encoder = nn.ModuleList([Block(*sizes, crosses=False) for _ in range(n_layer)])
        self.decoder = nn.ModuleList([Block(*sizes, crosses=True) for _ in range(n_layer)])
        self.ln_e, self.ln_d = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, tgt_vocab_size, bias=False)

    def places(self, ids):
        if ids.size(1) > self.block_size:
            raise ValueError(f"{ids.size(1)} tokens, block_size is {self.block_size}")
        return torch.arange(ids.size(1), device=ids.device)

    def forward(self, src, tgt):
        keep_src = src.ne(self.src_pad)[:, None, None, :]
        keep_tgt = tgt.ne(self.tgt_pad)[:, None, None, :]
        order = torch.arange(tgt.size(1), device=tgt.device)
        keep_tgt = keep_tgt & order.le(order[:, None])
        memory = self.src_wte(src) + self.src_wpe(self.places(src))
        for block in self.encoder:
            memory = block(memory, keep_src)
        memory = self.ln_e(memory)
        state = self.tgt_wte(tgt) + self.tgt_wpe(self.places(tgt))
        for block in self.decoder:
            state = block(state, keep_tgt, memory, keep_src)
        return self.lm_head(self.ln_d(state))
