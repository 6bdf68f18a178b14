"""Norms without weights, projections stacked in three axes, squared ReLU, turned backwards."""

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812


def norm(x):
    return F.rms_norm(x, (x.size(-1),))


class Rotary(nn.Module):
    def __init__(self, dim, max_seq_len, base=10000):
        super().__init__()
        inv = (1 / base) ** (torch.arange(0, dim, 2).float() / dim)
        t = torch.arange(max_seq_len).float()
        freqs = torch.outer(t, inv)
        self.register_buffer("cos", freqs.cos(), persistent=False)
        self.register_buffer("sin", freqs.sin(), persistent=False)

    def forward(self, x):  # B T H D
        cos, sin = self.cos[None, : x.size(1), None, :], self.sin[None, : x.size(1), None, :]
        x1, x2 = x.float().chunk(2, dim=-1)
        y1 = x1 * cos + x2 * sin
        y2 = x1 * (-sin) + x2 * cos
        return torch.cat((y1, y2), 3).type_as(x)


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, num_heads, max_seq_len):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.qkv_w = nn.Parameter(torch.empty(3, dim, dim).uniform_(-0.1, 0.1))
        self.rotary = Rotary(self.head_dim, max_seq_len)
        self.c_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            F.linear(x, self.qkv_w.flatten(end_dim=1))
            .view(b, t, 3 * self.num_heads, self.head_dim)
            .chunk(3, dim=-2)
        )
        q, k = norm(q), norm(k)
        q, k = self.rotary(q), self.rotary(k)
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
        )
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class MLP(nn.Module):
    def __init__(self, dim, hdim):
        super().__init__()
        self.c_fc = nn.Linear(dim, hdim, bias=False)
        self.c_proj = nn.Linear(hdim, dim, bias=False)

    def forward(self, x):
        return self.c_proj(F.relu(self.c_fc(x)).square())


class Block(nn.Module):
    def __init__(self, dim, num_heads, hdim, max_seq_len):
        super().__init__()
        self.attn = CausalSelfAttention(dim, num_heads, max_seq_len)
        self.mlp = MLP(dim, hdim)

    def forward(self, x):
        x = x + self.attn(norm(x))
        return x + self.mlp(norm(x))


class GPT(nn.Module):
    def __init__(self, vocab_size, num_layers, num_heads, model_dim, mlp_dim, max_seq_len=64):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, model_dim)
        self.blocks = nn.ModuleList(
            [Block(model_dim, num_heads, mlp_dim, max_seq_len) for _ in range(num_layers)]
        )
        self.lm_head = nn.Linear(model_dim, vocab_size, bias=False)

    def forward(self, input_seq):
        x = norm(self.embed(input_seq))
        for block in self.blocks:
            x = block(x)
        x = norm(x)
        logits = self.lm_head(x)
        return 15 * torch.tanh(logits / 15)
