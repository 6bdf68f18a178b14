"""Norms first, a norm after each stack, sequential feed-forward networks, one tied matrix."""

import math

import torch
from torch import nn
from torch.nn import functional


def sinusoids(length, channels):
    rate = math.log(10000) / channels
    inverse = torch.exp(-rate * torch.arange(0, channels, 2, dtype=torch.float64))
    time = torch.arange(length, dtype=torch.float64)[:, None] * inverse[None, :]
    return torch.stack([time.sin(), time.cos()], dim=-1).flatten(1)[:, :channels]


class MultiHeadAttention(nn.Module):
    def __init__(self, n_state, n_head):
        super().__init__()
        self.n_head = n_head
        self.query, self.key = nn.Linear(n_state, n_state), nn.Linear(n_state, n_state)
        self.value, self.out = nn.Linear(n_state, n_state), nn.Linear(n_state, n_state)

    def forward(self, x, xa=None, mask=None):
        source = x if xa is None else xa
        q, k, v = (
            one.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for one in (self.query(x), self.key(source), self.value(source))
        )
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).flatten(start_dim=2))


class ResidualAttentionBlock(nn.Module):
    def __init__(self, n_state, n_head, n_mlp, dropout, cross_attention=False):
        super().__init__()
        self.attn, self.attn_ln = MultiHeadAttention(n_state, n_head), nn.LayerNorm(n_state)
        self.cross_attn = MultiHeadAttention(n_state, n_head) if cross_attention else None
        self.cross_attn_ln = nn.LayerNorm(n_state) if cross_attention else None
        self.mlp = nn.Sequential(
            nn.Linear(n_state, n_mlp), nn.ReLU(), nn.Dropout(dropout), nn.Linear(n_mlp, n_state)
        )
        self.mlp_ln = nn.LayerNorm(n_state)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask, xa=None, xa_mask=None):
        x = x + self.drop(self.attn(self.attn_ln(x), mask=mask))
        if self.cross_attn is not None:
            x = x + self.drop(self.cross_attn(self.cross_attn_ln(x), xa, xa_mask))
        return x + self.drop(self.mlp(self.mlp_ln(x)))


class PreNormTransformer(nn.Module):
    def __init__(
        self,
        vocab_size,
        d_model=256,
        nhead=4,
        num_layers=3,
        dim_feedforward=1024,
        dropout=0.1,
        max_len=256,
        src_pad_token=0,
        tgt_pad_token=0,
    ):
        super().__init__()
        self.src_pad_token, self.tgt_pad_token, self.width = src_pad_token, tgt_pad_token, d_model
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.register_buffer("positions", sinusoids(max_len, d_model), persistent=False)

        def blocks(cross):
            return nn.ModuleList(
                ResidualAttentionBlock(d_model, nhead, dim_feedforward, dropout, cross)
                for _ in range(num_layers)
            )

        self.encoder_blocks, self.decoder_blocks = blocks(False), blocks(True)
        self.encoder_ln, self.decoder_ln = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def embed(self, tokens):
        x = self.token_embedding(tokens) * self.width**0.5
        return self.drop(x + self.positions[: tokens.shape[-1]].to(x.dtype))

    def encode(self, src):
        x, keep = self.embed(src), (src != self.src_pad_token)[:, None, None, :]
        for block in self.encoder_blocks:
            x = block(x, keep)
        return self.encoder_ln(x)

    def decode(self, tgt, memory, src):
        size = tgt.shape[1]
        past = torch.ones(size, size, dtype=torch.bool, device=tgt.device).tril()
        keep = (tgt != self.tgt_pad_token)[:, None, None, :] & past
        x = self.embed(tgt)
        for block in self.decoder_blocks:
            x = block(x, keep, memory, (src != self.src_pad_token)[:, None, None, :])
        return self.decoder_ln(x) @ self.token_embedding.weight.T

    def forward(self, src, tgt):
        return self.decode(tgt, self.encode(src), src)
