"""Stacks that take vectors: the caller embeds the tokens, adds positions, and maps the states."""

from torch import nn


class Transformer(nn.Module):
    def __init__(self, d_model=64, nhead=4, num_layers=2, dim_feedforward=128, dropout=0.1):
        super().__init__()
        sizes = d_model, nhead, dim_feedforward, dropout
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(*sizes, batch_first=True) for _ in range(num_layers)
        )
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(*sizes, batch_first=True) for _ in range(num_layers)
        )

    def forward(
        self, src, tgt, tgt_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None
    ):
        for layer in self.encoder:
            src = layer(src, src_key_padding_mask=src_key_padding_mask)
        for layer in self.decoder:
            tgt = layer(
                tgt,
                src,
                tgt_mask=tgt_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=src_key_padding_mask,
            )
        return tgt
