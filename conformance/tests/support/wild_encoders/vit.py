"""A vision transformer: its patches are no tokens."""

import torch
from torch import nn


class ViT(nn.Module):
    def __init__(
        self, image_size=32, patch_size=8, num_classes=10, dim=64, depth=2, heads=4, mlp_dim=128
    ):
        super().__init__()
        n = (image_size // patch_size) ** 2
        self.patch = nn.Conv2d(3, dim, patch_size, patch_size)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, n + 1, dim))
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(dim, heads, mlp_dim, batch_first=True), depth
        )
        self.head = nn.Linear(dim, num_classes)

    def forward(self, img):
        x = self.patch(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.head(self.encoder(x)[:, 0])
