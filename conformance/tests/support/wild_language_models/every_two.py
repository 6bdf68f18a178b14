"""Every two columns turned, as many as the settings say, beside a network with the same norm."""

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class GPTJConfig:
    def __init__(
        self,
        vocab_size=50400,
        n_positions=2048,
        n_embd=4096,
        n_layer=28,
        n_head=16,
        rotary_dim=8,
        n_inner=None,
        layer_norm_epsilon=1e-5,
    ):
        self.vocab_size, self.n_positions, self.n_embd = vocab_size, n_positions, n_embd
        self.n_layer, self.n_head, self.rotary_dim = n_layer, n_head, rotary_dim
        self.n_inner, self.layer_norm_epsilon = n_inner, layer_norm_epsilon


def fixed_pos_embedding(dim, seq_len):
    inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2) / dim))
    sinusoid_inp = torch.einsum("i , j -> i j", torch.arange(seq_len).float(), inv_freq)
    return torch.sin(sinusoid_inp), torch.cos(sinusoid_inp)


def rotate_every_two(x):
    x1 = x[:, :, :, ::2]
    x2 = x[:, :, :, 1::2]
    x = torch.stack((-x2, x1), axis=-1)
    return x.flatten(-2)


def apply_rotary_pos_emb(x, sincos):
    sin, cos = (t.repeat_interleave(2, dim=-1)[None, : x.shape[1], None, :] for t in sincos)
    return (x * cos) + (rotate_every_two(x) * sin)


class GPTJAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        m = config.n_positions
        self.register_buffer(
            "bias",
            torch.tril(torch.ones((m, m), dtype=torch.bool)).view(1, 1, m, m),
            persistent=False,
        )
        self.embed_dim, self.num_heads = config.n_embd, config.n_head
        self.head_dim = self.embed_dim // self.num_heads
        self.scale_attn = math.sqrt(self.head_dim)
        self.k_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=False)
        self.v_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=False)
        self.q_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=False)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=False)
        self.rotary_dim = config.rotary_dim

    def _split_heads(self, t):
        return t.view(*t.shape[:-1], self.num_heads, self.head_dim)

    def forward(self, hidden_states):
        query, key, value = (
            self._split_heads(p(hidden_states)) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        sincos = fixed_pos_embedding(self.rotary_dim, key.shape[1])
        key = torch.cat(
            [
                apply_rotary_pos_emb(key[..., : self.rotary_dim], sincos),
                key[..., self.rotary_dim :],
            ],
            dim=-1,
        )
        query = torch.cat(
            [
                apply_rotary_pos_emb(query[..., : self.rotary_dim], sincos),
                query[..., self.rotary_dim :],
            ],
            dim=-1,
        )
        key, query, value = (t.permute(0, 2, 1, 3) for t in (key, query, value))
        w = torch.matmul(query, key.transpose(-1, -2)) / self.scale_attn
        n = w.shape[-1]
        w = torch.where(
            self.bias[:, :, :n, :n], w, torch.tensor(torch.finfo(w.dtype).min, dtype=w.dtype)
        )
        w = F.softmax(w, dim=-1).to(value.dtype)
        out = torch.matmul(w, value).permute(0, 2, 1, 3).contiguous()
        return self.out_proj(out.view((*out.size()[:-2], self.embed_dim)))


class GPTJMLP(nn.Module):
    def __init__(self, intermediate_size, config):
        super().__init__()
        self.fc_in = nn.Linear(config.n_embd, intermediate_size)
        self.fc_out = nn.Linear(intermediate_size, config.n_embd)

    def forward(self, x):
        return self.fc_out(F.gelu(self.fc_in(x), approximate="tanh"))


class GPTJBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        inner = config.n_inner if config.n_inner is not None else 4 * config.n_embd
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = GPTJAttention(config)
        self.mlp = GPTJMLP(inner, config)

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = self.ln_1(hidden_states)
        return self.attn(hidden_states) + self.mlp(hidden_states) + residual


class GPTJForCausalLM(nn.Module):
    def __init__(self, config: GPTJConfig):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.h = nn.ModuleList([GPTJBlock(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size)

    def forward(self, input_ids):
        x = self.wte(input_ids)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))
