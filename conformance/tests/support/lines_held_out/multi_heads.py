"""Multi-head attention: as in published encoders, with tensordot, and with a configuration."""

import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class AttentionConfig:
    hidden_size: int = 64
    num_heads: int = 4


class MultiHeadAttention(nn.Module):
    """The state is split by transpose_for_scores; attention_mask is 1 for real tokens."""

    def __init__(self, config: AttentionConfig):
        super().__init__()
        if config.hidden_size % config.num_heads:
            raise ValueError(f"hidden_size {config.hidden_size}, num_heads {config.num_heads}")
        self.num_attention_heads = config.num_heads
        self.attention_head_size = config.hidden_size // config.num_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def transpose_for_scores(self, layer):
        shape = (*layer.size()[:-1], self.num_attention_heads, self.attention_head_size)
        return layer.view(*shape).permute(0, 2, 1, 3)

    def forward(self, query, key, value, attention_mask=None):
        query_layer = self.transpose_for_scores(self.query(query))
        key_layer = self.transpose_for_scores(self.key(key))
        value_layer = self.transpose_for_scores(self.value(value))
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / math.sqrt(self.attention_head_size)
        if attention_mask is not None:
            attention_scores = attention_scores.masked_fill(attention_mask == 0, -1e9)
        attention_probs = nn.Softmax(dim=-1)(attention_scores)
        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        context_layer = context_layer.flatten(start_dim=2)
        return self.dense(context_layer)


class MHA(nn.Module):
    """Weights (d_model, heads, width) contracted by tensordot; no transposes at all."""

    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model={d_model} is no multiple of heads={heads}")
        width = d_model // heads
        self.query_weight = nn.Parameter(torch.randn(d_model, heads, width) / d_model**0.5)
        self.key_weight = nn.Parameter(torch.randn(d_model, heads, width) / d_model**0.5)
        self.value_weight = nn.Parameter(torch.randn(d_model, heads, width) / d_model**0.5)
        self.output_weight = nn.Parameter(torch.randn(heads, width, d_model) / d_model**0.5)

    def forward(self, query, key, value, mask=None):
        """Attend. mask: True may be attended."""
        asked = torch.tensordot(query, self.query_weight, dims=1)
        offered = torch.tensordot(key, self.key_weight, dims=1)
        content = torch.tensordot(value, self.value_weight, dims=1)
        match = torch.einsum("bqhw,bkhw->bhqk", asked, offered)
        match = match.mul(asked.shape[3] ** -0.5)
        if mask is not None:
            match = match.masked_fill(torch.logical_not(mask), float("-inf"))
        share = torch.exp(torch.log_softmax(match, 3))
        gathered = torch.einsum("bhqk,bkhw->bqhw", share, content)
        return torch.tensordot(gathered, self.output_weight, dims=2)
