"""One class for many families: a configuration of switches, partial rotary positions, halves."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn


@dataclass
class Config:
    block_size: int = 4096
    vocab_size: int = 50254
    n_layer: int = 16
    n_head: int = 32
    n_embd: int = 4096
    n_query_groups: int | None = None
    rotary_percentage: float = 0.25
    parallel_residual: bool = False
    bias: bool = True
    norm_eps: float = 1e-5
    norm_class_name: Literal["LayerNorm", "RMSNorm"] = "LayerNorm"
    intermediate_size: int | None = None
    rope_base: int = 10000

    def __post_init__(self):
        assert self.n_embd % self.n_head == 0
        self.head_size = self.n_embd // self.n_head
        self.n_query_groups = self.n_query_groups or self.n_head
        assert self.n_head % self.n_query_groups == 0
        self.intermediate_size = self.intermediate_size or 4 * self.n_embd
        self.rope_n_elem = int(self.rotary_percentage * self.head_size)

    @property
    def norm_class(self):
        return getattr(nn, self.norm_class_name)


def build_rope_cache(seq_len, n_elem, base):
    theta = 1.0 / (base ** (torch.arange(0, n_elem, 2).float() / n_elem))
    idx_theta = torch.outer(torch.arange(seq_len), theta).repeat(1, 2)
    return torch.cos(idx_theta), torch.sin(idx_theta)


def apply_rope(x, cos, sin):
    half = x.size(-1) // 2
    rotated = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return ((x * cos) + (rotated * sin)).to(dtype=x.dtype)


class CausalSelfAttention(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        shape = (config.n_head + 2 * config.n_query_groups) * config.head_size
        self.qkv = nn.Linear(config.n_embd, shape, bias=config.bias)
        self.proj = nn.Linear(config.head_size * config.n_head, config.n_embd, bias=config.bias)
        self.config = config

    def forward(self, x, cos, sin):
        batch, length, _ = x.size()
        c = self.config
        widths = [n * c.head_size for n in (c.n_head, c.n_query_groups, c.n_query_groups)]
        q, k, v = self.qkv(x).split(widths, dim=-1)
        q = q.view(batch, length, c.n_head, c.head_size).transpose(1, 2)
        k = k.view(batch, length, c.n_query_groups, c.head_size).transpose(1, 2)
        v = v.view(batch, length, c.n_query_groups, c.head_size).transpose(1, 2)
        n = c.rope_n_elem
        q = torch.cat((apply_rope(q[..., :n], cos, sin), q[..., n:]), dim=-1)
        k = torch.cat((apply_rope(k[..., :n], cos, sin), k[..., n:]), dim=-1)
        k = k.repeat_interleave(c.n_head // c.n_query_groups, dim=1)
        v = v.repeat_interleave(c.n_head // c.n_query_groups, dim=1)
        y = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=1.0 / math.sqrt(c.head_size)
        )
        return self.proj(y.transpose(1, 2).reshape(batch, length, c.head_size * c.n_head))


class GptNeoxMLP(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.fc = nn.Linear(config.n_embd, config.intermediate_size, bias=config.bias)
        self.proj = nn.Linear(config.intermediate_size, config.n_embd, bias=config.bias)

    def forward(self, x):
        return self.proj(torch.nn.functional.gelu(self.fc(x)))


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.norm_1 = config.norm_class(config.n_embd, eps=config.norm_eps)
        self.attn = CausalSelfAttention(config)
        self.norm_2 = config.norm_class(config.n_embd, eps=config.norm_eps)
        self.mlp = GptNeoxMLP(config)
        self.config = config

    def forward(self, x, cos, sin):
        attention_output = self.attn(self.norm_1(x), cos, sin)
        if self.config.parallel_residual:
            return self.mlp(self.norm_2(x)) + attention_output + x
        x = attention_output + x
        return self.mlp(self.norm_2(x)) + x


class GPT(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer = nn.ModuleDict(
            dict(  # noqa: C408
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                h=nn.ModuleList(Block(config) for _ in range(config.n_layer)),
                ln_f=config.norm_class(config.n_embd, eps=config.norm_eps),
            )
        )
        cos, sin = build_rope_cache(config.block_size, config.rope_n_elem, config.rope_base)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, idx: torch.Tensor, input_pos: torch.Tensor | None = None) -> torch.Tensor:
        length = idx.size(1)
        if self.config.block_size < length:
            raise ValueError(f"Cannot forward sequence of length {length}")
        cos, sin = self.cos[:length], self.sin[:length]
        x = self.transformer.wte(idx)
        for block in self.transformer.h:
            x = block(x, cos, sin)
        return self.lm_head(self.transformer.ln_f(x))

    @classmethod
    def from_name(cls, **kwargs: Any) -> "GPT":
        return cls(Config(**kwargs))
