"""Positional encodings that return the table, which their callers add to the embeddings."""

import math

import torch
from torch import nn


def waves(length, width):
    place = torch.arange(length, dtype=torch.float64)[:, None]
    angles = place * torch.exp(
        torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width)
    )
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=512):
        super().__init__()
        self.register_buffer("pe", waves(max_len, d_model)[None], persistent=False)

    def forward(self, x):
        if x.size(1) > self.pe.size(1):
            raise ValueError(f"{x.size(1)} positions, and the table has {self.pe.size(1)}")
        return self.pe[:, : x.size(1)]


class Rows(PositionalEncoding):
    """One table (length, d_model) for all samples."""

    def forward(self, x):
        return super().forward(x)[0]


class SequenceFirst(PositionalEncoding):
    """Tensors are (seq, batch, d_model)."""

    def forward(self, x):
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


class Repeated(PositionalEncoding):
    """A table for every sample."""

    def forward(self, x):
        return super().forward(x).expand(len(x), -1, -1)


class OneBehind(PositionalEncoding):
    """A mistake: the first position has the second row."""

    def forward(self, x):
        return self.pe[:, 1 : x.size(1) + 1]


class CosinesFirst(PositionalEncoding):
    """A mistake: sines and cosines change places."""

    def forward(self, x):
        return super().forward(x).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
