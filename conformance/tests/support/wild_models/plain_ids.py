"""Pad id 0 written into the code, sequence first inside, fast attention, a module for each side."""

import torch
from torch import nn
from torch.nn import functional


class Side(nn.Module):
    def __init__(self, vocab, d_model, n_heads, d_ff, n_layers, max_len, dropout, decodes):
        super().__init__()
        self.tokens = nn.Embedding(vocab, d_model)
        self.places = nn.Embedding(max_len, d_model)
        kind = nn.TransformerDecoderLayer if decodes else nn.TransformerEncoderLayer
        self.layers = nn.ModuleList(
            kind(d_model, n_heads, d_ff, dropout, activation="gelu", norm_first=True)
            for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, ids, memory=None, memory_ids=None):
        where = torch.arange(ids.shape[1], device=ids.device)
        x = self.drop(self.tokens(ids) + self.places(where)).transpose(0, 1)
        hidden = ids == 0
        for layer in self.layers:
            if memory is None:
                x = layer(x, src_key_padding_mask=hidden)
            else:
                size = ids.shape[1]
                future = torch.ones(size, size, dtype=torch.bool, device=ids.device).triu(1)
                x = layer(
                    x,
                    memory,
                    tgt_mask=future,
                    tgt_key_padding_mask=hidden,
                    memory_key_padding_mask=memory_ids == 0,
                )
        return self.norm(x)


class Translator(nn.Module):
    def __init__(
        self,
        src_vocab_size,
        tgt_vocab_size,
        d_model=64,
        n_heads=4,
        d_ff=128,
        n_layers=2,
        max_len=128,
        dropout=0.1,
    ):
        super().__init__()
        rest = d_model, n_heads, d_ff, n_layers, max_len, dropout
        self.encoder = Side(src_vocab_size, *rest, decodes=False)
        self.decoder = Side(tgt_vocab_size, *rest, decodes=True)
        self.head = nn.Linear(d_model, tgt_vocab_size)

    def forward(self, src_ids, tgt_ids):
        memory = self.encoder(src_ids)
        states = self.decoder(tgt_ids, memory, src_ids).transpose(0, 1)
        return functional.log_softmax(self.head(states), dim=-1)
