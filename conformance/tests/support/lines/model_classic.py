"""A whole model in the usual style: post-norm, sinusoids, masks made inside."""

import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=100):
        super().__init__()
        pos = torch.arange(max_len, dtype=torch.float64)[:, None]
        freq = torch.exp(torch.arange(0, d_model, 2).double() * (-math.log(10000.0) / d_model))
        table = torch.zeros(max_len, d_model, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = torch.sin(pos * freq), torch.cos(pos * freq)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.size(1)].to(x.dtype)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"d_model {d_model} is not a multiple of n_heads {n_heads}")
        self.n_heads, self.head_dim = n_heads, d_model // n_heads
        self.fc_q = nn.Linear(d_model, d_model)
        self.fc_k = nn.Linear(d_model, d_model)
        self.fc_v = nn.Linear(d_model, d_model)
        self.fc_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        batch_size = query.shape[0]
        Q = self.fc_q(query).view(batch_size, -1, self.n_heads, self.head_dim)  # noqa: N806
        K = self.fc_k(key).view(batch_size, -1, self.n_heads, self.head_dim)  # noqa: N806
        V = self.fc_v(value).view(batch_size, -1, self.n_heads, self.head_dim)  # noqa: N806
        Q, K, V = Q.permute(0, 2, 1, 3), K.permute(0, 2, 1, 3), V.permute(0, 2, 1, 3)  # noqa: N806
        energy = torch.matmul(Q, K.permute(0, 1, 3, 2)) / math.sqrt(self.head_dim)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -1e10)
        attention = torch.softmax(energy, dim=-1)
        x = torch.matmul(attention, V)
        x = x.permute(0, 2, 1, 3).contiguous()
        return self.fc_o(x.view(batch_size, -1, self.n_heads * self.head_dim))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.fc_1, self.fc_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = torch.relu(self.fc_1(x))
        return self.fc_2(x)


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.attention_norm, self.ff_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, src, src_mask):
        _src = self.attention(src, src, src, src_mask)
        src = self.attention_norm(src + self.dropout(_src))
        _src = self.feed_forward(src)
        return self.ff_norm(src + self.dropout(_src))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.encoder_attention = MultiHeadAttention(d_model, n_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.self_norm, self.encoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ff_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, trg, enc_src, trg_mask, src_mask):
        _trg = self.self_attention(trg, trg, trg, trg_mask)
        trg = self.self_norm(trg + self.dropout(_trg))
        _trg = self.encoder_attention(trg, enc_src, enc_src, src_mask)
        trg = self.encoder_norm(trg + self.dropout(_trg))
        _trg = self.feed_forward(trg)
        return self.ff_norm(trg + self.dropout(_trg))


class Transformer(nn.Module):
    def __init__(
        self,
        src_vocab_size,
        tgt_vocab_size,
        d_model=64,
        n_heads=4,
        n_layers=2,
        d_ff=128,
        dropout=0.1,
        max_len=100,
        src_pad_idx=0,
        tgt_pad_idx=0,
    ):
        super().__init__()
        sizes = src_vocab_size, tgt_vocab_size, d_model, n_heads, n_layers, d_ff, max_len
        if min(sizes) < 1 or not 0 <= dropout < 1:
            raise ValueError(f"impossible sizes: {sizes}, dropout {dropout}")
        self.src_pad_idx, self.tgt_pad_idx, self.d_model = src_pad_idx, tgt_pad_idx, d_model
        self.src_embedding = nn.Embedding(src_vocab_size, d_model)
        self.tgt_embedding = nn.Embedding(tgt_vocab_size, d_model)
        self.positions = PositionalEncoding(d_model, max_len)
        layer = d_model, n_heads, d_ff, dropout
        self.encoder = nn.ModuleList([EncoderLayer(*layer) for _ in range(n_layers)])
        self.decoder = nn.ModuleList([DecoderLayer(*layer) for _ in range(n_layers)])
        self.out = nn.Linear(d_model, tgt_vocab_size)
        self.dropout = nn.Dropout(dropout)

    def make_src_mask(self, src):
        return (src != self.src_pad_idx).unsqueeze(1).unsqueeze(2)

    def make_tgt_mask(self, tgt):
        pad = (tgt != self.tgt_pad_idx).unsqueeze(1).unsqueeze(2)
        square = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device)
        return pad & torch.tril(square)

    def encode(self, src, src_mask):
        x = self.src_embedding(src) * math.sqrt(self.d_model)
        x = self.dropout(self.positions(x))
        for layer in self.encoder:
            x = layer(x, src_mask)
        return x

    def decode(self, tgt, memory, src_mask, tgt_mask):
        y = self.tgt_embedding(tgt) * math.sqrt(self.d_model)
        y = self.dropout(self.positions(y))
        for layer in self.decoder:
            y = layer(y, memory, tgt_mask, src_mask)
        return self.out(y)

    def forward(self, src, tgt):
        src_mask = self.make_src_mask(src)
        tgt_mask = self.make_tgt_mask(tgt)
        memory = self.encode(src, src_mask)
        return self.decode(tgt, memory, src_mask, tgt_mask)
