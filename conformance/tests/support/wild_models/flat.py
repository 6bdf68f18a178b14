"""A norm after the embeddings, tied matrices, and an output of one row for every token."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def get_pad_mask(seq, pad_idx):
    return (seq != pad_idx).unsqueeze(-2)


def get_subsequent_mask(seq):
    size = seq.size(1)
    return (1 - torch.triu(torch.ones((1, size, size), device=seq.device), diagonal=1)).bool()


class MultiHeadAttention(nn.Module):
    def __init__(self, n_head, d_model, d_k, d_v, dropout=0.1):
        super().__init__()
        self.n_head, self.d_k, self.d_v = n_head, d_k, d_v
        self.w_qs = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_ks = nn.Linear(d_model, n_head * d_k, bias=False)
        self.w_vs = nn.Linear(d_model, n_head * d_v, bias=False)
        self.fc = nn.Linear(n_head * d_v, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, q, k, v, mask=None):
        size, residual = q.size(0), q
        q = self.w_qs(q).view(size, -1, self.n_head, self.d_k).transpose(1, 2)
        k = self.w_ks(k).view(size, -1, self.n_head, self.d_k).transpose(1, 2)
        v = self.w_vs(v).view(size, -1, self.n_head, self.d_v).transpose(1, 2)
        attn = torch.matmul(q / self.d_k**0.5, k.transpose(2, 3))
        attn = functional.softmax(attn.masked_fill(mask.unsqueeze(1) == 0, -1e9), dim=-1)
        q = torch.matmul(attn, v).transpose(1, 2).contiguous().view(size, residual.size(1), -1)
        return self.layer_norm(self.dropout(self.fc(q)) + residual), attn


class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_in, d_hid, dropout=0.1):
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(d_in, d_hid), nn.Linear(d_hid, d_in)
        self.layer_norm = nn.LayerNorm(d_in, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.layer_norm(self.dropout(self.w_2(functional.relu(self.w_1(x)))) + x)


class EncoderLayer(nn.Module):
    def __init__(self, d_model, d_inner, n_head, d_k, d_v, dropout=0.1):
        super().__init__()
        self.slf_attn = MultiHeadAttention(n_head, d_model, d_k, d_v, dropout)
        self.pos_ffn = PositionwiseFeedForward(d_model, d_inner, dropout)

    def forward(self, enc_input, slf_attn_mask=None):
        enc_output, _ = self.slf_attn(enc_input, enc_input, enc_input, slf_attn_mask)
        return self.pos_ffn(enc_output)


class DecoderLayer(nn.Module):
    def __init__(self, d_model, d_inner, n_head, d_k, d_v, dropout=0.1):
        super().__init__()
        self.slf_attn = MultiHeadAttention(n_head, d_model, d_k, d_v, dropout)
        self.enc_attn = MultiHeadAttention(n_head, d_model, d_k, d_v, dropout)
        self.pos_ffn = PositionwiseFeedForward(d_model, d_inner, dropout)

    def forward(self, dec_input, enc_output, slf_attn_mask=None, dec_enc_attn_mask=None):
        x, _ = self.slf_attn(dec_input, dec_input, dec_input, slf_attn_mask)
        x, _ = self.enc_attn(x, enc_output, enc_output, dec_enc_attn_mask)
        return self.pos_ffn(x)


class PositionalEncoding(nn.Module):
    def __init__(self, d_hid, n_position=200):
        super().__init__()
        place = np.arange(n_position)[:, None]
        table = place / np.power(10000, 2 * (np.arange(d_hid) // 2) / d_hid)
        table[:, 0::2], table[:, 1::2] = np.sin(table[:, 0::2]), np.cos(table[:, 1::2])
        self.register_buffer("pos_table", torch.from_numpy(table).unsqueeze(0), persistent=False)

    def forward(self, x):
        return x + self.pos_table[:, : x.size(1)].clone().detach().to(x.dtype)


class Transformer(nn.Module):
    def __init__(
        self,
        n_src_vocab,
        n_trg_vocab,
        src_pad_idx,
        trg_pad_idx,
        d_model=512,
        d_inner=2048,
        n_layers=6,
        n_head=8,
        d_k=64,
        d_v=64,
        dropout=0.1,
        n_position=200,
    ):
        super().__init__()
        self.src_pad_idx, self.trg_pad_idx, self.d_model = src_pad_idx, trg_pad_idx, d_model
        self.src_word_emb = nn.Embedding(n_src_vocab, d_model)
        self.trg_word_emb = nn.Embedding(n_trg_vocab, d_model)
        self.position_enc = PositionalEncoding(d_model, n_position)
        sizes = d_model, d_inner, n_head, d_k, d_v, dropout
        self.enc_stack = nn.ModuleList([EncoderLayer(*sizes) for _ in range(n_layers)])
        self.dec_stack = nn.ModuleList([DecoderLayer(*sizes) for _ in range(n_layers)])
        self.src_layer_norm = nn.LayerNorm(d_model, eps=1e-6)
        self.trg_layer_norm = nn.LayerNorm(d_model, eps=1e-6)
        self.dropout = nn.Dropout(dropout)
        self.trg_word_prj = nn.Linear(d_model, n_trg_vocab, bias=False)
        self.trg_word_prj.weight = self.trg_word_emb.weight

    def forward(self, src_seq, trg_seq):
        src_mask = get_pad_mask(src_seq, self.src_pad_idx)
        trg_mask = get_pad_mask(trg_seq, self.trg_pad_idx) & get_subsequent_mask(trg_seq)
        x = self.src_word_emb(src_seq) * self.d_model**0.5
        x = self.src_layer_norm(self.dropout(self.position_enc(x)))
        for layer in self.enc_stack:
            x = layer(x, slf_attn_mask=src_mask)
        y = self.trg_word_emb(trg_seq) * self.d_model**0.5
        y = self.trg_layer_norm(self.dropout(self.position_enc(y)))
        for layer in self.dec_stack:
            y = layer(y, x, slf_attn_mask=trg_mask, dec_enc_attn_mask=src_mask)
        logit = self.trg_word_prj(y)
        return logit.view(-1, logit.size(2))
