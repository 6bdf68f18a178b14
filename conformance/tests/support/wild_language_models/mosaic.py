"""No biases anywhere, linear biases by distance with 8/H as exponent, and a packed projection."""

import math
from types import SimpleNamespace

import torch
from torch import nn


def gen_slopes(n_heads, alibi_bias_max=8):
    _n_heads = 2 ** math.ceil(math.log2(n_heads))
    m = torch.arange(1, _n_heads + 1, dtype=torch.float32) * (alibi_bias_max / _n_heads)
    slopes = 1.0 / torch.pow(2, m)
    if _n_heads != n_heads:
        slopes = torch.concat([slopes[1::2], slopes[::2]])[:n_heads]
    return slopes.view(1, n_heads, 1, 1)


def norm(width):
    made = nn.LayerNorm(width)
    made.register_parameter("bias", None)
    return made


class MultiheadAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads} heads do not divide {d_model}")
        self.d_model, self.n_heads = d_model, n_heads
        self.Wqkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, attn_bias):
        b, s, d = x.shape
        query, key, value = self.Wqkv(x).chunk(3, dim=2)
        q = query.view(b, s, self.n_heads, -1).permute(0, 2, 1, 3)
        k = key.view(b, s, self.n_heads, -1).permute(0, 2, 3, 1)
        v = value.view(b, s, self.n_heads, -1).permute(0, 2, 1, 3)
        weight = q.matmul(k) * (1 / math.sqrt(d // self.n_heads)) + attn_bias[..., -s:]
        causal = torch.ones(s, s, dtype=torch.bool, device=x.device).tril()
        weight = weight.masked_fill(~causal.view(1, 1, s, s), torch.finfo(q.dtype).min)
        return self.out_proj((weight.softmax(-1) @ v).transpose(1, 2).flatten(2))


class MPTBlock(nn.Module):
    def __init__(self, d_model, n_heads, expansion_ratio):
        super().__init__()
        self.norm_1, self.norm_2 = norm(d_model), norm(d_model)
        self.attn = MultiheadAttention(d_model, n_heads)
        self.ffn = nn.ModuleDict(
            {
                "up_proj": nn.Linear(d_model, expansion_ratio * d_model, bias=False),
                "down_proj": nn.Linear(expansion_ratio * d_model, d_model, bias=False),
            }
        )

    def forward(self, x, attn_bias):
        x = x + self.attn(self.norm_1(x), attn_bias)
        hidden = nn.functional.gelu(self.ffn["up_proj"](self.norm_2(x)), approximate="none")
        return x + self.ffn["down_proj"](hidden)


class MPTForCausalLM(nn.Module):
    def __init__(self, config: SimpleNamespace):
        super().__init__()
        self.n_heads, self.max_seq_len = config.n_heads, config.max_seq_len
        self.wte = nn.Embedding(config.vocab_size, config.d_model)
        self.blocks = nn.ModuleList(
            MPTBlock(config.d_model, config.n_heads, config.expansion_ratio)
            for _ in range(config.n_layers)
        )
        self.norm_f = norm(config.d_model)

    def forward(self, input_ids):
        s = input_ids.shape[1]
        if s > self.max_seq_len:
            raise ValueError(f"{s} tokens, and {self.max_seq_len} fit")
        x = self.wte(input_ids)
        attn_bias = torch.arange(1 - s, 1, device=x.device, dtype=x.dtype).view(1, 1, 1, s)
        attn_bias = attn_bias * gen_slopes(self.n_heads).to(x)
        for block in self.blocks:
            x = block(x, attn_bias)
        return nn.functional.linear(self.norm_f(x), self.wte.weight)
