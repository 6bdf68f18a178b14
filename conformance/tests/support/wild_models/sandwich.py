"""A model of two halves built by one function; the target comes first in the call."""

import torch
from torch import nn


def attention(width, heads):
    return nn.MultiheadAttention(width, heads, batch_first=True)


class Half(nn.Module):
    def __init__(self, width, heads, inner, depth, crossed):
        super().__init__()
        self.steps = nn.ModuleList()
        for _ in range(depth):
            step = nn.Module()
            step.self_attention, step.norm_self = attention(width, heads), nn.LayerNorm(width)
            if crossed:
                step.cross_attention, step.norm_cross = attention(width, heads), nn.LayerNorm(width)
            step.up, step.down = nn.Linear(width, inner), nn.Linear(inner, width)
            step.norm_ff = nn.LayerNorm(width)
            self.steps.append(step)

    def forward(self, x, hidden, order=None, memory=None, memory_hidden=None):
        for step in self.steps:
            y, _ = step.self_attention(
                x, x, x, key_padding_mask=hidden, attn_mask=order, need_weights=False
            )
            x = step.norm_self(x + y)
            if memory is not None:
                y, _ = step.cross_attention(
                    x, memory, memory, key_padding_mask=memory_hidden, need_weights=False
                )
                x = step.norm_cross(x + y)
            x = step.norm_ff(x + step.down(torch.relu(step.up(x))))
        return x


class Network(nn.Module):
    def __init__(self, src_vocab_size, trg_vocab_size, d_model, nheads, d_ff, n_layers, max_len):
        super().__init__()
        self.embed_src = nn.Embedding(src_vocab_size, d_model)
        self.embed_trg = nn.Embedding(trg_vocab_size, d_model)
        self.pos_src, self.pos_trg = nn.Embedding(max_len, d_model), nn.Embedding(max_len, d_model)
        self.encoder = Half(d_model, nheads, d_ff, n_layers, False)
        self.decoder = Half(d_model, nheads, d_ff, n_layers, True)
        self.classifier = nn.Linear(d_model, trg_vocab_size)

    def forward(self, trg, src, trg_key_padding_mask, src_key_padding_mask):
        n = trg.size(1)
        order = torch.ones(n, n, dtype=torch.bool, device=trg.device).triu(diagonal=1)
        x = self.embed_src(src) + self.pos_src.weight[None, : src.size(1)]
        memory = self.encoder(x, src_key_padding_mask)
        y = self.embed_trg(trg) + self.pos_trg.weight[None, :n]
        y = self.decoder(y, trg_key_padding_mask, order, memory, src_key_padding_mask)
        return self.classifier(y), memory
