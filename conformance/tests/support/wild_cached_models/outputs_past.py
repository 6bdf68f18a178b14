"""A configuration, a mask of all tokens, positions, and an object with logits and past keys."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class CausalLMOutput:
    logits: torch.Tensor | None = None
    past_key_values: tuple | None = None


class TinyConfig:
    def __init__(
        self,
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        rms_norm_eps=1e-6,
    ):
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.intermediate_size, self.num_hidden_layers = intermediate_size, num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads or num_attention_heads
        self.rms_norm_eps = rms_norm_eps


class TinyRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class TinyLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        d, self.heads, self.shared = (
            config.hidden_size, config.num_attention_heads, config.num_key_value_heads
        )  # fmt: skip
        if d % self.heads or self.heads % self.shared:
            raise ValueError(f"{d}, {self.heads} and {self.shared} do not fit")
        self.head_dim = d // self.heads
        self.q_proj = nn.Linear(d, d, bias=False)
        self.k_proj = nn.Linear(d, self.shared * self.head_dim, bias=False)
        self.v_proj = nn.Linear(d, self.shared * self.head_dim, bias=False)
        self.o_proj = nn.Linear(d, d, bias=False)
        self.gate_proj = nn.Linear(d, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(d, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, d, bias=False)
        self.input_layernorm = TinyRMSNorm(d, config.rms_norm_eps)
        self.post_attention_layernorm = TinyRMSNorm(d, config.rms_norm_eps)

    def forward(self, hidden, cos, sin, mask, past):
        b, t, d = hidden.shape
        x = self.input_layernorm(hidden)
        q = self.q_proj(x).view(b, t, -1, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(b, t, -1, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(b, t, -1, self.head_dim).transpose(1, 2)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        kept = (k, v)
        k = k.repeat_interleave(self.heads // self.shared, dim=1)
        v = v.repeat_interleave(self.heads // self.shared, dim=1)
        weights = (q @ k.transpose(2, 3)) * self.head_dim**-0.5
        weights = weights.masked_fill(~mask, torch.finfo(weights.dtype).min).softmax(-1)
        hidden = hidden + self.o_proj((weights @ v).transpose(1, 2).reshape(b, t, d))
        x = self.post_attention_layernorm(hidden)
        x = self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return hidden + x, kept


class TinyForCausalLM(nn.Module):
    def __init__(self, config: TinyConfig):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([TinyLayer(config) for _ in range(config.num_hidden_layers)])
        self.norm = TinyRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        use_cache=False,
    ):
        t = input_ids.shape[1]
        past = 0 if past_key_values is None else past_key_values[0][0].shape[2]
        if position_ids is None:
            position_ids = torch.arange(past, past + t, device=input_ids.device).unsqueeze(0)
        width = self.config.hidden_size // self.config.num_attention_heads
        inv_freq = 1.0 / 10000.0 ** (torch.arange(0, width, 2, device=input_ids.device) / width)
        freqs = position_ids[:, None, :, None] * inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        x = self.embed_tokens(input_ids)
        cos, sin = emb.cos().to(x.dtype), emb.sin().to(x.dtype)
        mask = torch.ones(past + t, past + t, dtype=torch.bool, device=x.device).tril()[past:]
        mask = mask[None, None]
        if attention_mask is not None:
            mask = mask & attention_mask[:, None, None, :].bool()
        presents = []
        for i, layer in enumerate(self.layers):
            own = None if past_key_values is None else past_key_values[i]
            x, kept = layer(x, cos, sin, mask, own)
            presents.append(kept)
        logits = self.lm_head(self.norm(x))
        return CausalLMOutput(logits, tuple(presents) if use_cache else None)
