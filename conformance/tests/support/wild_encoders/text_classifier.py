"""A classifier of texts, pre-norm blocks with packed projections, a mask made of the ids."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads, inner, p):
        super().__init__()
        self.h, self.p = heads, p
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width), nn.Dropout(p)
        )

    def attend(self, x, pad):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.h, -1)).permute(2, 0, 3, 1, 4)
        s = torch.einsum("bhqe,bhke->bhqk", q, k) / q.shape[-1] ** 0.5
        s = s.masked_fill(pad[:, None, None, :], float("-inf")).softmax(-1)
        y = torch.einsum("bhqk,bhke->bqhe", functional.dropout(s, self.p, self.training), v)
        return functional.dropout(self.proj(y.flatten(2)), self.p, self.training)

    def forward(self, x, pad):
        x = x + self.attend(self.a(x), pad)
        return x + self.mlp(self.b(x))


class TextClassifier(nn.Module):
    def __init__(
        self,
        vocab,
        n_classes=3,
        width=64,
        depth=2,
        heads=4,
        inner=256,
        max_len=128,
        p=0.1,
        pad_id=0,
    ):
        super().__init__()
        self.pad_id = pad_id
        self.words = nn.Embedding(vocab, width)
        self.places = nn.Parameter(torch.randn(max_len, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, inner, p) for _ in range(depth))
        self.final = nn.LayerNorm(width)
        self.head = nn.Linear(width, n_classes)

    def forward(self, ids):
        pad = ids == self.pad_id
        x = self.words(ids) + self.places[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, pad)
        x = self.final(x)
        keep = (~pad).unsqueeze(-1).to(x)
        return self.head((x * keep).sum(1) / keep.sum(1).clamp(min=1))
