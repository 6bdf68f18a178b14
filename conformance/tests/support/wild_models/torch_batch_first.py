"""torch.nn.Transformer with the batch first; all masks are made inside."""

import math

import torch
from torch import nn


class TransformerModel(nn.Module):
    def __init__(
        self,
        src_vocab_size,
        tgt_vocab_size,
        embed_dim,
        num_heads,
        num_layers,
        ffn_dim,
        dropout=0.1,
        src_pad_id=0,
        tgt_pad_id=0,
        max_len=512,
    ):
        super().__init__()
        self.src_pad_id, self.tgt_pad_id, self.embed_dim = src_pad_id, tgt_pad_id, embed_dim
        self.src_tok = nn.Embedding(src_vocab_size, embed_dim)
        self.tgt_tok = nn.Embedding(tgt_vocab_size, embed_dim)
        position = torch.arange(max_len, dtype=torch.float64).unsqueeze(1)
        div = 10000.0 ** (torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim)
        pe = torch.zeros(max_len, embed_dim, dtype=torch.float64)
        pe[:, 0::2] = torch.sin(position / div)
        pe[:, 1::2] = torch.cos(position / div[: embed_dim // 2])
        self.register_buffer("pe", pe, persistent=False)
        self.drop = nn.Dropout(dropout)
        self.transformer = nn.Transformer(
            embed_dim, num_heads, num_layers, num_layers, ffn_dim, dropout, batch_first=True
        )
        self.out = nn.Linear(embed_dim, tgt_vocab_size)

    def _embed(self, table, ids):
        x = table(ids) * math.sqrt(self.embed_dim)
        return self.drop(x + self.pe[: ids.size(1)].to(x.dtype))

    def forward(self, src, tgt):
        size = tgt.size(1)
        future = torch.ones(size, size, dtype=torch.bool, device=tgt.device).triu(1)
        states = self.transformer(
            self._embed(self.src_tok, src),
            self._embed(self.tgt_tok, tgt),
            tgt_mask=future,
            src_key_padding_mask=src == self.src_pad_id,
            tgt_key_padding_mask=tgt == self.tgt_pad_id,
            memory_key_padding_mask=src == self.src_pad_id,
        )
        return self.out(states)
