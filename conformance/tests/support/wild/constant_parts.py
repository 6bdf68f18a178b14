"""Parts of a model whose sizes are constants of the file, as in a tutorial in one script."""

import math

import torch
import torch.nn as nn

d_model = 512
n_heads = 8
d_k = d_v = 64
d_ff = 2048
dropout = 0.1
batch_size = 32


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, attn_mask=None):
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(d_k)
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask, -1e9)
        attn = torch.softmax(scores, dim=-1)
        return torch.matmul(attn, v), attn


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_Q = nn.Linear(d_model, d_k * n_heads)
        self.W_K = nn.Linear(d_model, d_k * n_heads)
        self.W_V = nn.Linear(d_model, d_v * n_heads)
        self.fc = nn.Linear(n_heads * d_v, d_model)

    def forward(self, q, k, v, attn_mask=None):
        batch = q.size(0)
        q_s = self.W_Q(q).view(batch, -1, n_heads, d_k).transpose(1, 2)
        k_s = self.W_K(k).view(batch, -1, n_heads, d_k).transpose(1, 2)
        v_s = self.W_V(v).view(batch, -1, n_heads, d_v).transpose(1, 2)
        if attn_mask is not None:
            attn_mask = attn_mask.unsqueeze(1).repeat(1, n_heads, 1, 1)
        context, attn = ScaledDotProductAttention()(q_s, k_s, v_s, attn_mask)
        context = context.transpose(1, 2).contiguous().view(batch, -1, n_heads * d_v)
        return self.fc(context), attn


class PositionwiseFeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn, self.ffn = MultiHeadAttention(), PositionwiseFeedForward()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, attn_mask=None):
        out, attn = self.self_attn(x, x, x, attn_mask)
        x = self.norm1(x + self.drop(out))
        return self.norm2(x + self.drop(self.ffn(x))), attn
