"""One pad id, a switch for tied tables that must be given, states in the place of logits."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout, crossing):
        super().__init__()
        self.n_heads = n_heads
        self.own = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))
        self.crossing = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4 * crossing))
        self.feed = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 + crossing))
        self.dropout = nn.Dropout(dropout)

    def attend(self, parts, x, memory, visible):
        q, k, v = (
            part(one).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for part, one in zip(parts, (x, memory, memory), strict=False)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~visible, -1e9).softmax(-1)
        return parts[3]((weights @ v).transpose(1, 2).flatten(2))

    def forward(self, x, visible, memory=None, memory_visible=None):
        first, *between, last = self.norms
        x = first(x + self.dropout(self.attend(self.own, x, x, visible)))
        for norm in between:
            seen = self.attend(self.crossing, x, memory, memory_visible)
            x = norm(x + self.dropout(seen))
        return last(x + self.dropout(self.feed(x)))


class Transformer(nn.Module):
    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        pad_token_index: int,
        share_tables: bool,
        d_model: int = 64,
        n_heads: int = 4,
        d_ff: int = 128,
        num_encoder_blocks: int = 2,
        num_decoder_blocks: int = 2,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.pad = pad_token_index
        self.source_table = nn.Embedding(source_vocabulary_size, d_model, pad_token_index)
        self.target_table = nn.Embedding(target_vocabulary_size, d_model, pad_token_index)
        if share_tables:
            self.source_table.weight = self.target_table.weight
        sizes = d_model, n_heads, d_ff, dropout
        self.encoder = nn.ModuleList(Layer(*sizes, False) for _ in range(num_encoder_blocks))
        self.decoder = nn.ModuleList(Layer(*sizes, True) for _ in range(num_decoder_blocks))

    def embed(self, table, ids):
        width = table.weight.shape[1]
        steps = torch.arange(ids.shape[1], dtype=table.weight.dtype)[:, None]
        angles = steps / 10000 ** (torch.arange(0, width, 2, dtype=steps.dtype) / width)
        waves = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]
        return table(ids) * width**0.5 + waves

    def visible(self, ids):
        return (ids != self.pad)[:, None, None]

    def forward(self, sources, targets):
        shown = self.visible(sources)
        memory = self.embed(self.source_table, sources)
        for layer in self.encoder:
            memory = layer(memory, shown)
        size = targets.shape[1]
        past = torch.ones(size, size, dtype=torch.bool).tril()
        x = self.embed(self.target_table, targets)
        for layer in self.decoder:
            x = layer(x, self.visible(targets) & past, memory, shown)
        return x
