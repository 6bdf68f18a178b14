"""A configuration class, a model inside a model, an attention mask, and an object of outputs."""

from dataclasses import dataclass

import torch
from torch import nn

ACT2FN = {"silu": nn.functional.silu, "gelu": nn.functional.gelu}


class TinyConfig:
    def __init__(
        self,
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        hidden_act="silu",
        max_position_embeddings=2048,
        rms_norm_eps=1e-6,
        rope_theta=10000.0,
        tie_word_embeddings=False,
        **kwargs,
    ):
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.intermediate_size, self.num_hidden_layers = intermediate_size, num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.num_key_value_heads = num_key_value_heads or num_attention_heads
        self.hidden_act, self.rms_norm_eps, self.rope_theta = hidden_act, rms_norm_eps, rope_theta
        self.max_position_embeddings = max_position_embeddings
        self.tie_word_embeddings = tie_word_embeddings


@dataclass
class CausalLMOutput:
    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None


class TinyRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)


class TinyRotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.int64).float() / dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, x, position_ids):
        freqs = position_ids[:, :, None].float() * self.inv_freq[None, None, :].float()
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


class TinyAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.shared = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = config.hidden_size // self.heads
        if self.head_dim * self.heads != config.hidden_size or self.heads % self.shared:
            raise ValueError(f"{config.hidden_size}, {self.heads} and {self.shared} do not fit")
        self.q_proj = nn.Linear(config.hidden_size, self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, self.shared * self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, self.shared * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, config.hidden_size, bias=False)

    def forward(self, hidden_states, position_embeddings, attention_mask):
        b, t, _ = hidden_states.shape
        cos, sin = (one.unsqueeze(1) for one in position_embeddings)
        query = self.q_proj(hidden_states).view(b, t, -1, self.head_dim).transpose(1, 2)
        key = self.k_proj(hidden_states).view(b, t, -1, self.head_dim).transpose(1, 2)
        value = self.v_proj(hidden_states).view(b, t, -1, self.head_dim).transpose(1, 2)
        query = (query * cos) + (rotate_half(query) * sin)
        key = (key * cos) + (rotate_half(key) * sin)
        key = key.repeat_interleave(self.heads // self.shared, dim=1)
        value = value.repeat_interleave(self.heads // self.shared, dim=1)
        weights = torch.matmul(query, key.transpose(2, 3)) * self.head_dim**-0.5
        weights = nn.functional.softmax(weights + attention_mask, dim=-1, dtype=torch.float32)
        output = torch.matmul(weights.to(query.dtype), value)
        return self.o_proj(output.transpose(1, 2).reshape(b, t, -1))


class TinyMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.act_fn = ACT2FN[config.hidden_act]

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class TinyDecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attn = TinyAttention(config)
        self.mlp = TinyMLP(config)
        self.input_layernorm = TinyRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = TinyRMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, hidden_states, position_embeddings, attention_mask):
        attended = self.self_attn(
            self.input_layernorm(hidden_states), position_embeddings, attention_mask
        )
        hidden_states = hidden_states + attended
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))


class TinyModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            [TinyDecoderLayer(config) for _ in range(config.num_hidden_layers)]
        )
        self.norm = TinyRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        width = config.hidden_size // config.num_attention_heads
        self.rotary_emb = TinyRotaryEmbedding(width, config.rope_theta)

    def forward(self, input_ids, attention_mask=None, position_ids=None):
        x = self.embed_tokens(input_ids)
        t = input_ids.shape[1]
        if position_ids is None:
            position_ids = torch.arange(t, device=x.device).unsqueeze(0)
        keep = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()[None, None]
        if attention_mask is not None:
            keep = keep & attention_mask[:, None, None, :].bool()
        mask = torch.zeros(keep.shape, dtype=x.dtype, device=x.device)
        mask = mask.masked_fill(~keep, torch.finfo(x.dtype).min)
        position_embeddings = self.rotary_emb(x, position_ids)
        for layer in self.layers:
            x = layer(x, position_embeddings, mask)
        return self.norm(x)


class TinyForCausalLM(nn.Module):
    def __init__(self, config: TinyConfig):
        super().__init__()
        self.config = config
        self.model = TinyModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, labels=None):
        logits = self.lm_head(self.model(input_ids, attention_mask, position_ids))
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
            )
        return CausalLMOutput(loss=loss, logits=logits)
