"""A whole decoder-only model whose feed-forward network is a mixture of experts."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


@dataclass
class MixtralConfig:
    vocab_size: int = 100352
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    num_local_experts: int = 8
    num_experts_per_tok: int = 2
    max_position_embeddings: int = 2048
    rope_theta: float = 500000.0
    rms_norm_eps: float = 1e-6


class MixtralRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, h):
        dtype = h.dtype
        h = h.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return (self.weight * h).to(dtype)


def rope_tables(positions, dim, theta):
    inv_freq = 1.0 / (theta ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim))
    freqs = positions[..., None].float() * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    return emb.cos(), emb.sin()


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class MixtralAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.n, self.g = c.num_attention_heads, c.num_key_value_heads or c.num_attention_heads
        self.d = c.hidden_size // self.n
        self.q_proj = nn.Linear(c.hidden_size, self.n * self.d, bias=False)
        self.k_proj = nn.Linear(c.hidden_size, self.g * self.d, bias=False)
        self.v_proj = nn.Linear(c.hidden_size, self.g * self.d, bias=False)
        self.o_proj = nn.Linear(self.n * self.d, c.hidden_size, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q = (self.q_proj(x)).view(b, t, self.n, self.d).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.g, self.d).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.g, self.d).transpose(1, 2)
        cos, sin = cos[:, None], sin[:, None]
        q, k = ((u * cos + rotate_half(u) * sin).to(x.dtype) for u in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, -1))


class BlockSparseTop2MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w1 = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)
        self.w2 = nn.Linear(c.intermediate_size, c.hidden_size, bias=False)
        self.w3 = nn.Linear(c.hidden_size, c.intermediate_size, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMoeBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.num_experts, self.top_k = c.num_local_experts, c.num_experts_per_tok
        self.gate = nn.Linear(c.hidden_size, self.num_experts, bias=False)
        self.experts = nn.ModuleList([BlockSparseTop2MLP(c) for _ in range(self.num_experts)])

    def forward(self, hidden_states):
        b, t, d = hidden_states.shape
        hidden_states = hidden_states.view(-1, d)
        router_logits = self.gate(hidden_states)
        routing_weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        routing_weights, selected = torch.topk(routing_weights, self.top_k, dim=-1)
        routing_weights = routing_weights / routing_weights.sum(dim=-1, keepdim=True)
        routing_weights = routing_weights.to(hidden_states.dtype)
        final = torch.zeros_like(hidden_states)
        expert_mask = F.one_hot(selected, num_classes=self.num_experts).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            idx, top_x = torch.where(expert_mask[i])
            out = expert(hidden_states[top_x]) * routing_weights[top_x, idx, None]
            final.index_add_(0, top_x, out.to(hidden_states.dtype))
        return final.reshape(b, t, d)


class MixtralLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attn, self.mlp = MixtralAttention(c), SparseMoeBlock(c)
        self.post_attn, self.post_mlp = (
            MixtralRMSNorm(c.hidden_size, c.rms_norm_eps),
            MixtralRMSNorm(c.hidden_size, c.rms_norm_eps),
        )

    def forward(self, x, cos, sin):
        x = x + self.attn(self.post_attn(x), cos, sin)
        return x + self.mlp(self.post_mlp(x))


class MixtralForCausalLM(nn.Module):
    def __init__(self, config: MixtralConfig):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(MixtralLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = MixtralRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids, position_ids=None):
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        d = self.config.hidden_size // self.config.num_attention_heads
        cos, sin = rope_tables(position_ids, d, self.config.rope_theta)
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))
