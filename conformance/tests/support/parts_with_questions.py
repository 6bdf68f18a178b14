"""Sound parts that are asked about: a name, an argument or a size that says nothing."""

from torch import nn
from torch.nn import functional


def attend(q, k, v, keep=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if keep is not None:
        scores = scores.masked_fill(~keep, float("-inf"))
    return scores.softmax(-1) @ v


class Projected(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def run(self, x, y, keep=None):
        q, k, v = (
            one(z).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one, z in ((self.q, x), (self.k, y), (self.v, y))
        )
        return self.o(attend(q, k, v, keep).transpose(1, 2).flatten(2))


class Mixer(Projected):
    def forward(self, x, mask=None):
        return self.run(x, x, mask)


class Expand(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(functional.relu(self.up(x)))


class AttentionWithPositions(Projected):
    def forward(self, x, offsets, mask=None):
        x = x if offsets is None else x + offsets
        return self.run(x, x, mask)


class AttentionOverArea(Projected):
    def forward(self, x, area):
        return self.run(x, x, area)


class AttentionToOther(Projected):
    def forward(self, x, other, mask=None):
        return self.run(x, other, mask)


class AttentionInTwoWays(Projected):
    def __init__(self, d_model, heads, fused):
        super().__init__(d_model, heads)
        self.fused = fused

    def forward(self, x, mask=None):
        return self.run(x, x, mask)


class FeedForwardOfLetters(Expand):
    def __init__(self, a, b):
        super().__init__(a, b)


class DecoderLayerOfStates(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.first, self.second = Projected(d_model, heads), Projected(d_model, heads)
        self.network = Expand(d_model, d_ff)
        self.n1, self.n2, self.n3 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, states, tgt_mask, facts, src_mask):
        x = self.n1(states + self.first.run(states, states, tgt_mask))
        x = self.n2(x + self.second.run(x, facts, src_mask))
        return self.n3(x + self.network(x))
