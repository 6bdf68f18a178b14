"""Self-attention with a mask of padding that it multiplies by itself, for queries and keys."""

import torch
from torch import nn


class Attention(nn.Module):
    """Hides the keys of padding, and every key from a query that is padding."""

    def __init__(self, dim, heads):
        super().__init__()
        if dim % heads:
            raise ValueError(f"{dim} features cannot be split into {heads} heads")
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def hidden(self, mask):
        return ~(mask[:, None, :, None] & mask[:, None, None, :])

    def forward(self, x, mask=None):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.to_qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(self.hidden(mask), -torch.finfo(scores.dtype).max)
        return self.to_out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))


class PaddingIsTrue(Attention):
    """Hides the same where the mask marks padding."""

    def hidden(self, mask):
        return mask[:, None, :, None] | mask[:, None, None, :]


class HidesWhatIsKept(Attention):
    """Wrong: hides the pairs that may be attended."""

    def hidden(self, mask):
        return mask[:, None, :, None] & mask[:, None, None, :]


class HidesQueriesAlone(Attention):
    """Wrong: hides no key from a query that is no padding."""

    def hidden(self, mask):
        return ~mask[:, None, :, None].expand(-1, -1, -1, mask.shape[-1])


class HidesTheNextKey(Attention):
    """Wrong: hides the key after the one that is padding."""

    def hidden(self, mask):
        return super().hidden(mask.roll(1, dims=-1))


class NeedsItsMask(Attention):
    """Hides the same, and refuses to work without a mask."""

    def forward(self, x, mask):
        if mask is None:
            raise ValueError("a mask is needed")
        return super().forward(x, mask)
