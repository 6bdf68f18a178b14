"""A translation model that is given lengths in the place of masks."""

import math

import torch
from torch import nn


def hidden_after(lengths, count):
    """Return True for the keys behind each length, (B, 1, 1, count)."""
    return (torch.arange(count, device=lengths.device) >= lengths[:, None])[:, None, None]


class Heads(nn.Module):
    def __init__(self, adim, aheads):
        super().__init__()
        self.aheads, self.width = aheads, adim // aheads
        self.linear_q = nn.Linear(adim, adim)
        self.linear_k = nn.Linear(adim, adim)
        self.linear_v = nn.Linear(adim, adim)
        self.linear_out = nn.Linear(adim, adim)

    def forward(self, query, key, value, hidden):
        q, k, v = (
            one.unflatten(2, (self.aheads, self.width)).transpose(1, 2)
            for one in (self.linear_q(query), self.linear_k(key), self.linear_v(value))
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(self.width)
        shares = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.linear_out((shares @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, adim, units):
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(adim, units), nn.Linear(units, adim)

    def forward(self, x):
        return self.w_2(self.w_1(x).relu())


class EncoderLayer(nn.Module):
    def __init__(self, adim, aheads, units, rate):
        super().__init__()
        self.self_attn, self.feed_forward = Heads(adim, aheads), FeedForward(adim, units)
        self.norm1, self.norm2 = nn.LayerNorm(adim), nn.LayerNorm(adim)
        self.dropout = nn.Dropout(rate)

    def forward(self, xs, hidden):
        ready = self.norm1(xs)
        xs = xs + self.dropout(self.self_attn(ready, ready, ready, hidden))
        return xs + self.dropout(self.feed_forward(self.norm2(xs)))


class DecoderLayer(nn.Module):
    def __init__(self, adim, aheads, units, rate):
        super().__init__()
        self.self_attn, self.src_attn = Heads(adim, aheads), Heads(adim, aheads)
        self.feed_forward = FeedForward(adim, units)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(adim) for _ in range(3))
        self.dropout = nn.Dropout(rate)

    def forward(self, ys, hidden, memory, memory_hidden):
        ready = self.norm1(ys)
        ys = ys + self.dropout(self.self_attn(ready, ready, ready, hidden))
        ready = self.norm2(ys)
        ys = ys + self.dropout(self.src_attn(ready, memory, memory, memory_hidden))
        return ys + self.dropout(self.feed_forward(self.norm3(ys)))


class Seq2SeqTransformer(nn.Module):
    def __init__(
        self,
        idim,
        odim,
        adim=256,
        aheads=4,
        eunits=1024,
        elayers=6,
        dunits=1024,
        dlayers=6,
        max_len=512,
        dropout_rate=0.1,
    ):
        super().__init__()
        self.scale = math.sqrt(adim)
        self.embed_x, self.embed_y = nn.Embedding(idim, adim), nn.Embedding(odim, adim)
        self.places_x, self.places_y = nn.Embedding(max_len, adim), nn.Embedding(max_len, adim)
        self.encoders = nn.ModuleList(
            EncoderLayer(adim, aheads, eunits, dropout_rate) for _ in range(elayers)
        )
        self.decoders = nn.ModuleList(
            DecoderLayer(adim, aheads, dunits, dropout_rate) for _ in range(dlayers)
        )
        self.after_norm_x, self.after_norm_y = nn.LayerNorm(adim), nn.LayerNorm(adim)
        self.dropout = nn.Dropout(dropout_rate)
        self.output_layer = nn.Linear(adim, odim)

    def forward(self, xs_pad, ilens, ys_in_pad, ys_in_lens):
        hidden_x = hidden_after(ilens, xs_pad.size(1))
        steps = torch.arange(ys_in_pad.size(1), device=ys_in_pad.device)
        hidden_y = hidden_after(ys_in_lens, len(steps)) | (steps > steps[:, None])
        xs = self.embed_x(xs_pad) * self.scale + self.places_x.weight[: xs_pad.size(1)]
        ys = self.embed_y(ys_in_pad) * self.scale + self.places_y.weight[: len(steps)]
        xs, ys = self.dropout(xs), self.dropout(ys)
        for layer in self.encoders:
            xs = layer(xs, hidden_x)
        memory = self.after_norm_x(xs)
        for layer in self.decoders:
            ys = layer(ys, hidden_y, memory, hidden_x)
        return self.output_layer(self.after_norm_y(ys))
