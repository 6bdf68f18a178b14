"""A configuration object, attention masks of ones and zeros, and an output with fields."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class TranslationConfig:
    vocab_size: int = 32000
    tgt_vocab_size: int = 32000
    hidden_size: int = 512
    num_hidden_layers: int = 6
    num_attention_heads: int = 8
    intermediate_size: int = 2048
    hidden_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    layer_norm_eps: float = 1e-12


@dataclass
class TranslationOutput:
    logits: torch.Tensor
    encoder_last_hidden_state: torch.Tensor


class SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.heads = config.num_attention_heads
        self.q_proj, self.k_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.v_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, hidden_states, key_value_states=None, bias=None):
        states = hidden_states if key_value_states is None else key_value_states
        size, width = len(states), states.size(-1)

        def split(x):
            return x.view(size, -1, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = (
            split(self.q_proj(hidden_states)),
            split(self.k_proj(states)),
            split(self.v_proj(states)),
        )
        scores = q @ k.transpose(2, 3) * (width // self.heads) ** -0.5 + bias
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(size, -1, width))


class Layer(nn.Module):
    def __init__(self, config, cross=False):
        super().__init__()
        width, eps = config.hidden_size, config.layer_norm_eps
        self.self_attn = SelfAttention(config)
        self.self_attn_layer_norm = nn.LayerNorm(width, eps=eps)
        if cross:
            self.encoder_attn = SelfAttention(config)
            self.encoder_attn_layer_norm = nn.LayerNorm(width, eps=eps)
        self.fc1 = nn.Linear(width, config.intermediate_size)
        self.fc2 = nn.Linear(config.intermediate_size, width)
        self.final_layer_norm = nn.LayerNorm(width, eps=eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x, bias, memory=None, memory_bias=None):
        x = self.self_attn_layer_norm(x + self.dropout(self.self_attn(x, bias=bias)))
        if memory is not None:
            inner = self.encoder_attn(x, memory, memory_bias)
            x = self.encoder_attn_layer_norm(x + self.dropout(inner))
        inner = self.fc2(nn.functional.gelu(self.fc1(x)))
        return self.final_layer_norm(x + self.dropout(inner))


class Side(nn.Module):
    def __init__(self, config, vocabulary, cross):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, config.hidden_size)
        self.embed_positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, cross) for _ in range(config.num_hidden_layers))
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, ids, bias, *rest):
        where = torch.arange(ids.size(1), device=ids.device)
        x = self.dropout(self.embed_tokens(ids) + self.embed_positions(where))
        for layer in self.layers:
            x = layer(x, bias, *rest)
        return x


def expanded(mask, dtype):
    """Return 0 where the mask is 1, and the least number of the format where it is 0."""
    return (1.0 - mask[:, None, None, :].to(dtype)) * torch.finfo(dtype).min


class TranslationTransformer(nn.Module):
    def __init__(self, config: TranslationConfig):
        super().__init__()
        self.encoder = Side(config, config.vocab_size, cross=False)
        self.decoder = Side(config, config.tgt_vocab_size, cross=True)
        self.lm_head = nn.Linear(config.hidden_size, config.tgt_vocab_size, bias=False)

    def forward(
        self, input_ids, decoder_input_ids, attention_mask=None, decoder_attention_mask=None
    ):
        """Masks are 1 for tokens to attend to and 0 for padding tokens."""
        dtype = self.lm_head.weight.dtype
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        if decoder_attention_mask is None:
            decoder_attention_mask = torch.ones_like(decoder_input_ids)
        size = decoder_input_ids.size(1)
        past = torch.ones(size, size, dtype=dtype, device=input_ids.device).tril()
        bias = expanded(attention_mask, dtype)
        both = decoder_attention_mask[:, None, None, :].to(dtype) * past
        memory = self.encoder(input_ids, bias)
        own = (1.0 - both) * torch.finfo(dtype).min
        states = self.decoder(decoder_input_ids, own, memory, bias)
        return TranslationOutput(self.lm_head(states), memory)
