"""Masks that are added to the scores, handed in, one for each attention; probabilities come out."""

import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length):
        super().__init__()
        half = torch.arange(d_model, dtype=torch.float64) // 2
        angle = torch.arange(max_length, dtype=torch.float64)[:, None] / 10000 ** (
            2 * half / d_model
        )
        even = torch.arange(d_model) % 2 == 0
        self.register_buffer("table", torch.where(even, angle.sin(), angle.cos()), False)

    def forward(self, x):
        return x + self.table[: x.size(1)].to(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.depth = num_heads, d_model // num_heads
        self.wq, self.wk = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.wv, self.dense = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def split_heads(self, x):
        return x.reshape(x.size(0), -1, self.num_heads, self.depth).permute(0, 2, 1, 3)

    def forward(self, v, k, q, mask):
        q, k, v = map(self.split_heads, (self.wq(q), self.wk(k), self.wv(v)))
        logits = q @ k.transpose(-1, -2) / math.sqrt(self.depth)
        if mask is not None:
            logits = logits + mask
        x = (logits.softmax(-1) @ v).permute(0, 2, 1, 3)
        return self.dense(x.reshape(x.size(0), -1, self.num_heads * self.depth))


def point_wise_feed_forward_network(d_model, dff):
    return nn.Sequential(nn.Linear(d_model, dff), nn.ReLU(), nn.Linear(dff, d_model))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, dff, rate):
        super().__init__()
        self.mha, self.ffn = (
            MultiHeadAttention(d_model, num_heads),
            point_wise_feed_forward_network(d_model, dff),
        )
        self.layernorm1 = nn.LayerNorm(d_model, eps=1e-6)
        self.layernorm2 = nn.LayerNorm(d_model, eps=1e-6)
        self.dropout1, self.dropout2 = nn.Dropout(rate), nn.Dropout(rate)

    def forward(self, x, mask):
        out1 = self.layernorm1(x + self.dropout1(self.mha(x, x, x, mask)))
        return self.layernorm2(out1 + self.dropout2(self.ffn(out1)))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, dff, rate):
        super().__init__()
        self.mha1 = MultiHeadAttention(d_model, num_heads)
        self.mha2 = MultiHeadAttention(d_model, num_heads)
        self.ffn = point_wise_feed_forward_network(d_model, dff)
        self.layernorm1 = nn.LayerNorm(d_model, eps=1e-6)
        self.layernorm2 = nn.LayerNorm(d_model, eps=1e-6)
        self.layernorm3 = nn.LayerNorm(d_model, eps=1e-6)
        self.dropout = nn.Dropout(rate)

    def forward(self, x, enc_output, look_ahead_mask, padding_mask):
        out1 = self.layernorm1(x + self.dropout(self.mha1(x, x, x, look_ahead_mask)))
        attn2 = self.mha2(enc_output, enc_output, out1, padding_mask)
        out2 = self.layernorm2(out1 + self.dropout(attn2))
        return self.layernorm3(out2 + self.dropout(self.ffn(out2)))


class Transformer(nn.Module):
    def __init__(
        self,
        num_layers,
        d_model,
        num_heads,
        dff,
        input_vocab_size,
        target_vocab_size,
        max_length,
        rate=0.1,
    ):
        super().__init__()
        self.d_model = d_model
        self.encoder_embedding = nn.Embedding(input_vocab_size, d_model)
        self.decoder_embedding = nn.Embedding(target_vocab_size, d_model)
        self.pos_encoding = PositionalEncoding(d_model, max_length)
        self.enc_layers = nn.ModuleList(
            EncoderLayer(d_model, num_heads, dff, rate) for _ in range(num_layers)
        )
        self.dec_layers = nn.ModuleList(
            DecoderLayer(d_model, num_heads, dff, rate) for _ in range(num_layers)
        )
        self.dropout = nn.Dropout(rate)
        self.final_layer = nn.Linear(d_model, target_vocab_size)

    def forward(self, inp, tar, enc_padding_mask, look_ahead_mask, dec_padding_mask):
        x = self.dropout(self.pos_encoding(self.encoder_embedding(inp) * self.d_model**0.5))
        for layer in self.enc_layers:
            x = layer(x, enc_padding_mask)
        y = self.dropout(self.pos_encoding(self.decoder_embedding(tar) * self.d_model**0.5))
        for layer in self.dec_layers:
            y = layer(y, x, look_ahead_mask, dec_padding_mask)
        return self.final_layer(y).softmax(-1)
