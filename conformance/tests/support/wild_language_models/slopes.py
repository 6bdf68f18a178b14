"""Linear biases by distance, a norm of the embeddings, and three matrices of each head in one."""

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


def get_slopes(n_heads):
    closest = 2 ** math.floor(math.log2(n_heads))
    base = 2 ** (-(2 ** -(math.log2(closest) - 3)))
    slopes = [base**power for power in range(1, 1 + closest)]
    if closest != n_heads:
        extra = 2 ** (-(2 ** -(math.log2(2 * closest) - 3)))
        slopes += [extra**power for power in range(1, 1 + 2 * (n_heads - closest), 2)]
    return torch.tensor(slopes)


def build_alibi(heads, length, dtype, device):
    distance = (
        torch.arange(length, device=device)[None, :] - torch.arange(length, device=device)[:, None]
    )
    return (get_slopes(heads).to(device)[:, None, None] * distance).to(dtype)


class BloomAttention(nn.Module):
    def __init__(self, hidden_size, n_head):
        super().__init__()
        self.num_heads, self.head_dim = n_head, hidden_size // n_head
        if self.head_dim * n_head != hidden_size:
            raise ValueError(f"hidden_size {hidden_size} must be divisible by n_head {n_head}")
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size, bias=True)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states, residual, alibi):
        b, t, d = hidden_states.shape
        fused = self.query_key_value(hidden_states).view(b, t, self.num_heads, 3, self.head_dim)
        q, k, v = (fused[..., i, :].transpose(1, 2) for i in range(3))
        scores = q @ k.mT / math.sqrt(self.head_dim) + alibi
        future = torch.ones(t, t, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
        context = F.softmax(scores, dim=-1) @ v
        return self.dense(context.transpose(1, 2).reshape(b, t, d)) + residual


class BloomBlock(nn.Module):
    def __init__(self, hidden_size, n_head, eps):
        super().__init__()
        self.input_layernorm = nn.LayerNorm(hidden_size, eps=eps)
        self.self_attention = BloomAttention(hidden_size, n_head)
        self.post_attention_layernorm = nn.LayerNorm(hidden_size, eps=eps)
        self.dense_h_to_4h = nn.Linear(hidden_size, 4 * hidden_size)
        self.dense_4h_to_h = nn.Linear(4 * hidden_size, hidden_size)

    def forward(self, x, alibi):
        x = self.self_attention(self.input_layernorm(x), x, alibi)
        hidden = self.dense_h_to_4h(self.post_attention_layernorm(x))
        hidden = (
            hidden
            * 0.5
            * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * hidden * (1 + 0.044715 * hidden**2)))
        )
        return x + self.dense_4h_to_h(hidden)


class BloomForCausalLM(nn.Module):
    def __init__(self, vocab_size, hidden_size=64, n_layer=2, n_head=8, layer_norm_epsilon=1e-5):
        super().__init__()
        self.n_head = n_head
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size)
        self.word_embeddings_layernorm = nn.LayerNorm(hidden_size, eps=layer_norm_epsilon)
        self.h = nn.ModuleList(
            [BloomBlock(hidden_size, n_head, layer_norm_epsilon) for _ in range(n_layer)]
        )
        self.ln_f = nn.LayerNorm(hidden_size, eps=layer_norm_epsilon)
        self.lm_head = nn.Linear(hidden_size, vocab_size, bias=False)
        self.lm_head.weight = self.word_embeddings.weight

    def forward(self, input_ids):
        x = self.word_embeddings_layernorm(self.word_embeddings(input_ids))
        alibi = build_alibi(self.n_head, input_ids.shape[1], x.dtype, x.device)
        for block in self.h:
            x = block(x, alibi)
        return self.lm_head(self.ln_f(x))
