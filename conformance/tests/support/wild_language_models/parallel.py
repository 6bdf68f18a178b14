"""Parallel blocks with two norms, heads that hold query, key and value one after the other."""

import torch
from torch import nn
from torch.nn import functional


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))

    def forward(self, length):
        t = torch.arange(length, device=self.inv_freq.device, dtype=self.inv_freq.dtype)
        freqs = torch.einsum("i,j->ij", t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos()[None, None], emb.sin()[None, None]


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class GPTNeoXAttention(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, rotary_pct):
        super().__init__()
        assert hidden_size % num_attention_heads == 0
        self.num_heads, self.head_size = num_attention_heads, hidden_size // num_attention_heads
        self.rotary_ndims = int(self.head_size * rotary_pct)
        self.rotary_emb = RotaryEmbedding(self.rotary_ndims)
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, x):
        b, t, _ = x.shape
        qkv = self.query_key_value(x).view(b, t, self.num_heads, 3 * self.head_size)
        q, k, v = qkv.transpose(1, 2).chunk(3, dim=-1)
        cos, sin = self.rotary_emb(t)

        def turned(one):
            rot, rest = one[..., : self.rotary_ndims], one[..., self.rotary_ndims :]
            return torch.cat((rot * cos + rotate_half(rot) * sin, rest), dim=-1)

        out = functional.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
        return self.dense(out.permute(0, 2, 1, 3).reshape(b, t, -1))


class GPTNeoXLayer(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, intermediate_size, rotary_pct, eps):
        super().__init__()
        self.input_layernorm = nn.LayerNorm(hidden_size, eps=eps)
        self.post_attention_layernorm = nn.LayerNorm(hidden_size, eps=eps)
        self.attention = GPTNeoXAttention(hidden_size, num_attention_heads, rotary_pct)
        self.dense_h_to_4h = nn.Linear(hidden_size, intermediate_size)
        self.dense_4h_to_h = nn.Linear(intermediate_size, hidden_size)

    def forward(self, x):
        attended = self.attention(self.input_layernorm(x))
        hidden = functional.gelu(self.dense_h_to_4h(self.post_attention_layernorm(x)))
        return x + attended + self.dense_4h_to_h(hidden)


class GPTNeoXForCausalLM(nn.Module):
    def __init__(
        self,
        vocab_size,
        hidden_size,
        num_hidden_layers,
        num_attention_heads,
        intermediate_size,
        rotary_pct=0.25,
        layer_norm_eps=1e-5,
    ):
        super().__init__()
        self.embed_in = nn.Embedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList(
            GPTNeoXLayer(
                hidden_size, num_attention_heads, intermediate_size, rotary_pct, layer_norm_eps
            )
            for _ in range(num_hidden_layers)
        )
        self.final_layer_norm = nn.LayerNorm(hidden_size, eps=layer_norm_eps)
        self.embed_out = nn.Linear(hidden_size, vocab_size, bias=False)

    def forward(self, input_ids):
        x = self.embed_in(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.embed_out(self.final_layer_norm(x))
