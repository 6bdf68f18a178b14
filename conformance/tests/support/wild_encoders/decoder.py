"""A decoder with its table of tokens and its positions inside, and a projection behind."""

import math

import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.n_head = n_head
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            way(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for way, x in ((self.w_q, q), (self.w_k, k), (self.w_v, v))
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.w_o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, ffn_hidden, n_head, drop_prob):
        super().__init__()
        self.self_attention, self.cross = Heads(d_model, n_head), Heads(d_model, n_head)
        self.up, self.down = nn.Linear(d_model, ffn_hidden), nn.Linear(ffn_hidden, d_model)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(drop_prob)

    def forward(self, dec, enc, trg_mask, src_mask):
        x = self.norm1(dec + self.dropout(self.self_attention(dec, dec, dec, trg_mask)))
        x = self.norm2(x + self.dropout(self.cross(x, enc, enc, src_mask)))
        return self.norm3(x + self.dropout(self.down(self.up(x).relu())))


class Decoder(nn.Module):
    def __init__(self, dec_voc_size, max_len, d_model, ffn_hidden, n_head, n_layers, drop_prob):
        super().__init__()
        self.table = nn.Embedding(dec_voc_size, d_model)
        self.rows = nn.Parameter(torch.randn(max_len, d_model))
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, ffn_hidden, n_head, drop_prob) for _ in range(n_layers)
        )
        self.linear = nn.Linear(d_model, dec_voc_size)

    def forward(self, trg, enc_src, trg_mask, src_mask):
        x = self.table(trg) + self.rows[: trg.size(1)]
        for layer in self.layers:
            x = layer(x, enc_src, trg_mask, src_mask)
        return self.linear(x)
