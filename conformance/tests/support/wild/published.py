"""Sound code of a library that reads a field of its configuration when it is called."""

import math

import torch
from torch import nn


class Published(nn.Module):
    """Reads the name of an activation when it is built, and another field when it is called."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.inner = nn.Linear(config.hidden_size, config.intermediate_size)
        self.outer = nn.Linear(config.intermediate_size, config.hidden_size)
        known = {"relu": nn.functional.relu, "gelu": nn.functional.gelu}
        self.activation = known[config.hidden_act]

    def forward(self, hidden_states):
        assert self.config._attn_implementation == "eager"
        return self.outer(self.activation(self.inner(hidden_states)))


class LayerNormFp32(nn.LayerNorm):
    """Computes in float32, whatever the precision of its input is."""

    def __init__(self, features):
        super().__init__(features)

    def forward(self, x):
        weight, bias = self.weight.float(), self.bias.float()
        found = nn.functional.layer_norm(x.float(), self.normalized_shape, weight, bias, self.eps)
        return found.to(x.dtype)


class BlurredNorm(LayerNormFp32):
    """A mistake: it also forgets its bias."""

    def forward(self, x):
        found = nn.functional.layer_norm(x.float(), self.normalized_shape, self.weight.float())
        return found.to(x.dtype)


def scaled_dot_product_attention(q, k, v, mask=None):
    """Divide the scores by a root that is a tensor of float32, whatever their precision is."""
    scores = q @ k.transpose(-2, -1) / torch.sqrt(torch.tensor(q.shape[-1]))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return scores.softmax(-1) @ v


class MultiHeadAttention(nn.Module):
    """Views its mask by the number of its axes; a wrong layout may pass for one that fits."""

    def __init__(self, n_heads, dim):
        super().__init__()
        self.dim, self.n_heads, self.head_dim = dim, n_heads, dim // n_heads
        assert dim % n_heads == 0
        self.q_lin = nn.Linear(dim, dim)
        self.k_lin = nn.Linear(dim, dim)
        self.v_lin = nn.Linear(dim, dim)
        self.out_lin = nn.Linear(dim, dim)

    def forward(self, input, mask, kv=None):
        samples, queries, _ = input.size()
        shape = (samples, 1, queries, -1) if mask.dim() == 3 else (samples, 1, 1, -1)
        kv = input if kv is None else kv
        q, k, v = (
            one(x).view(samples, -1, self.n_heads, self.head_dim).transpose(1, 2)
            for one, x in ((self.q_lin, input), (self.k_lin, kv), (self.v_lin, kv))
        )
        scores = (q / math.sqrt(self.head_dim)) @ k.transpose(2, 3)
        hidden = (mask == 0).view(shape).expand_as(scores)
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
        heads = (weights @ v).transpose(1, 2).contiguous()
        return (self.out_lin(heads.view(samples, -1, self.dim)),)


class MultiHeadAttentionOfTheKey(MultiHeadAttention):
    """Attends to its key, which is its value, too."""

    def forward(self, query, key, attn_mask=None):
        mask = key.new_ones(key.shape[:2]) if attn_mask is None else attn_mask
        return super().forward(query, mask, key)


class FeedForward(Published):
    """Looks up its activation by its name, in an argument that has no annotation."""

    def __init__(self, hidden_size, inner_size, hidden_act):
        nn.Module.__init__(self)
        self.inner = nn.Linear(hidden_size, inner_size)
        self.outer = nn.Linear(inner_size, hidden_size)
        self.activation = {"relu": nn.functional.relu, "gelu": nn.functional.gelu}[hidden_act]

    def forward(self, input_tensor):
        return self.outer(self.activation(self.inner(input_tensor)))


class MultiHeadSelfAttention(MultiHeadAttention):
    """Takes one tensor, called by its kind."""

    def forward(self, input_tensor, attention_mask):
        return super().forward(input_tensor, attention_mask)


def get_lookahead_mask(size, device):
    return torch.ones(size, size, device=device).triu(1).bool()
