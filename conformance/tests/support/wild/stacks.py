"""Stacks and a whole model as people write them, all sound."""

import torch
from parts import DecoderLayer, Embeddings, EncoderLayer, PositionalEncoding
from torch import nn


class Encoder(nn.Module):
    def __init__(self, d_model, num_layers, heads, d_ff, dropout):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, heads, d_ff, dropout) for _ in range(num_layers)
        )

    def forward(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Decoder(nn.Module):
    def __init__(self, d_model, num_layers, heads, d_ff, dropout):
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, heads, d_ff, dropout) for _ in range(num_layers)
        )

    def forward(self, x, memory, src_mask, tgt_mask):
        for layer in self.layers:
            x = layer(x, memory, src_mask, tgt_mask)
        return x


class Transformer(nn.Module):
    def __init__(
        self,
        src_vocab_size,
        tgt_vocab_size,
        d_model,
        num_heads,
        num_layers,
        d_ff,
        max_seq_length,
        dropout,
        src_pad_idx=0,
        tgt_pad_idx=0,
    ):
        super().__init__()
        self.encoder_embedding = Embeddings(d_model, src_vocab_size)
        self.decoder_embedding = Embeddings(d_model, tgt_vocab_size)
        self.positions = PositionalEncoding(d_model, dropout, max_seq_length)
        self.encoder = Encoder(d_model, num_layers, num_heads, d_ff, dropout)
        self.decoder = Decoder(d_model, num_layers, num_heads, d_ff, dropout)
        self.fc = nn.Linear(d_model, tgt_vocab_size)
        self.src_pad, self.tgt_pad = src_pad_idx, tgt_pad_idx

    def forward(self, src, tgt):
        src_mask = (src != self.src_pad).unsqueeze(1)
        square = torch.ones(tgt.size(1), tgt.size(1), device=tgt.device)
        tgt_mask = (tgt != self.tgt_pad).unsqueeze(1) & square.tril().bool()
        memory = self.encoder(self.positions(self.encoder_embedding(src)), src_mask)
        embedded = self.positions(self.decoder_embedding(tgt))
        return self.fc(self.decoder(embedded, memory, src_mask, tgt_mask))
