"""An encoder with its embedding and positions: pre-norm, time first inside, a final norm."""

import torch
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, num_heads, dropout=dropout)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, key_padding_mask=None):
        y = self.norm1(x)
        y, _ = self.self_attn(y, y, y, key_padding_mask=key_padding_mask, need_weights=False)
        x = x + self.dropout(y)
        y = self.linear2(torch.relu(self.linear1(self.norm2(x))))
        return x + self.dropout(y)


class Encoder(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_layers, num_heads, d_ff, max_len, pad_idx=1, dropout=0.1
    ):
        super().__init__()
        self.pad_idx = pad_idx
        self.embed = nn.Embedding(vocab_size, d_model, padding_idx=pad_idx)
        self.positions = nn.Embedding(max_len, d_model)
        self.layers = nn.ModuleList(
            [EncoderLayer(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)]
        )
        self.norm = nn.LayerNorm(d_model)

    def forward(self, tokens):
        padding = tokens.eq(self.pad_idx)
        x = self.embed(tokens) + self.positions.weight[: tokens.shape[1]]
        x = x.transpose(0, 1)
        for layer in self.layers:
            x = layer(x, key_padding_mask=padding)
        return self.norm(x).transpose(0, 1)
