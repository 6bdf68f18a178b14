"""Scaled and tied embeddings, norms of 1 + weight, gates of tanh GELU, soft caps, both sides."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class GemmaConfig:
    def __init__(
        self,
        vocab_size: int = 256000,
        max_position_embeddings: int = 8192,
        num_hidden_layers: int = 28,
        num_attention_heads: int = 16,
        num_key_value_heads: int = 16,
        hidden_size: int = 3072,
        intermediate_size: int = 24576,
        rms_norm_eps: float = 1e-6,
        final_logit_softcapping: float = 30.0,
        attn_logit_softcapping: float = 50.0,
    ):
        self.vocab_size = vocab_size
        self.max_position_embeddings = max_position_embeddings
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.rms_norm_eps = rms_norm_eps
        self.final_logit_softcapping = final_logit_softcapping
        self.attn_logit_softcapping = attn_logit_softcapping


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0) -> torch.Tensor:
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    freqs = torch.outer(torch.arange(end), freqs).float()
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(x: torch.Tensor, freqs_cis: torch.Tensor) -> torch.Tensor:
    x_ = torch.view_as_complex(torch.stack(torch.chunk(x.float(), 2, dim=-1), dim=-1))
    x_out = torch.view_as_real(x_ * freqs_cis).type_as(x)
    x_out = torch.cat(torch.chunk(x_out, 2, dim=-1), dim=-2)
    return x_out.reshape(x_out.shape[0], x_out.shape[1], x_out.shape[2], -1)


class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * (1 + self.weight.float())).type_as(x)


class GemmaMLP(nn.Module):
    def __init__(self, hidden_size: int, intermediate_size: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.gelu(self.gate_proj(x), approximate="tanh") * self.up_proj(x))


class GemmaAttention(nn.Module):
    def __init__(self, config: GemmaConfig):
        super().__init__()
        self.num_heads, self.num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        assert self.num_heads % self.num_kv_heads == 0
        assert config.hidden_size % self.num_heads == 0
        self.head_dim = config.hidden_size // self.num_heads
        self.q_size, self.kv_size = config.hidden_size, self.num_kv_heads * self.head_dim
        self.qkv_proj = nn.Linear(config.hidden_size, self.q_size + 2 * self.kv_size, bias=False)
        self.o_proj = nn.Linear(self.q_size, config.hidden_size, bias=False)
        self.cap = config.attn_logit_softcapping

    def forward(self, x, freqs_cis, mask):
        b, t, _ = x.shape
        xq, xk, xv = self.qkv_proj(x).split([self.q_size, self.kv_size, self.kv_size], dim=-1)
        q = apply_rotary_emb(xq.view(b, t, -1, self.head_dim).transpose(1, 2), freqs_cis)
        k = apply_rotary_emb(xk.view(b, t, -1, self.head_dim).transpose(1, 2), freqs_cis)
        v = xv.view(b, t, -1, self.head_dim).transpose(1, 2)
        k = torch.repeat_interleave(k, self.num_heads // self.num_kv_heads, dim=1)
        v = torch.repeat_interleave(v, self.num_heads // self.num_kv_heads, dim=1)
        scores = torch.matmul(q * self.head_dim**-0.5, k.transpose(2, 3))
        scores = torch.tanh(scores / self.cap) * self.cap + mask
        output = torch.matmul(F.softmax(scores.float(), dim=-1).type_as(q), v)
        return self.o_proj(output.transpose(1, 2).contiguous().view(b, t, -1))


class Gemma2DecoderLayer(nn.Module):
    def __init__(self, config: GemmaConfig):
        super().__init__()
        self.self_attn = GemmaAttention(config)
        self.mlp = GemmaMLP(config.hidden_size, config.intermediate_size)
        for name in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            setattr(self, f"{name}_layernorm", RMSNorm(config.hidden_size, config.rms_norm_eps))

    def forward(self, x, freqs_cis, mask):
        h = self.self_attn(self.input_layernorm(x), freqs_cis, mask)
        x = x + self.post_attention_layernorm(h)
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


class GemmaForCausalLM(nn.Module):
    def __init__(self, config: GemmaConfig):
        super().__init__()
        self.config = config
        self.embedder = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            Gemma2DecoderLayer(config) for _ in range(config.num_hidden_layers)
        )
        self.norm = RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        width = config.hidden_size // config.num_attention_heads
        freqs_cis = precompute_freqs_cis(width, config.max_position_embeddings * 2)
        self.register_buffer("freqs_cis", freqs_cis)

    def forward(self, input_token_ids: torch.Tensor) -> torch.Tensor:
        t = input_token_ids.shape[1]
        x = self.embedder(input_token_ids)
        x = x * torch.tensor(self.config.hidden_size**0.5, dtype=x.dtype, device=x.device)
        mask = torch.full((1, 1, t, t), -2.3819763e38, device=x.device).triu(1).to(x.dtype)
        for layer in self.layers:
            x = layer(x, self.freqs_cis[:t], mask)
        logits = self.norm(x) @ self.embedder.weight.t()
        cap = self.config.final_logit_softcapping
        return torch.tanh(logits / cap) * cap
