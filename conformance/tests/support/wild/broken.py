"""Twins of sound code, with one mistake each."""

import math

import parts
import torch
from multi_head_attention import (
    MHA,
    MultiHeadAttention,
    MultiHeadedAttention,
    MultiHeadSelfAttention,
)
from parts import PositionwiseFeedForward
from torch import nn


def attention_without_scale(query, key, value, mask=None, dropout=None):
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def attention_inverting_one_head(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        hide = (mask == 0).expand_as(scores).clone()
        hide[:, 0] = ~hide[:, 0]
        scores = scores.masked_fill(hide, -1e9)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def attention_ignoring_the_mask(q, k, v, attn_mask=None):
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
    return weights @ v


def attention_over_queries(queries, keys, values, *, mask=None):
    scores = queries @ keys.mT / math.sqrt(queries.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(dim=-2) @ values


def attention_telling_other_weights(Q, K, V, mask=None):  # noqa: N803
    scores = Q @ K.mT / math.sqrt(Q.size(-1))
    told = scores.softmax(-1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return told, scores.softmax(-1) @ V


def attention_masking_after(attention_mask, q, k, v):
    weights = (q @ k.mT / math.sqrt(q.size(-1))).softmax(-1)
    if attention_mask is not None:
        weights = weights * attention_mask
    return {"attn_weights": weights, "context": weights @ v}


def attention_adding_almost_nothing(q, k, v, attention_mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if attention_mask is not None:
        scores = scores + (1.0 - attention_mask.to(scores.dtype)) * -1e-9
    return scores.softmax(-1) @ v


def attention_hiding_what_is_kept(q, k, v, attention_mask=None):
    """Attend; attention_mask is 1 for real tokens."""
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if attention_mask is not None:
        scores = scores.masked_fill(attention_mask.bool(), -1e9)
    return scores.softmax(-1) @ v


class MultiHeadAttentionMerged(MultiHeadAttention):
    """Merges the heads without putting them behind the sequence first."""

    def forward(self, v, k, q, mask):
        b, n, d = q.shape
        q, k, v = self.split(self.wq(q)), self.split(self.wk(k)), self.split(self.wv(v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.depth)
        if mask is not None:
            scores = scores + mask.to(scores.dtype) * -1e30
        return self.dense((scores.softmax(-1) @ v).reshape(b, n, d))


class MultiHeadAttentionUnscaled(MultiHeadedAttention):
    """Scales by the width of the model."""

    def forward(self, query, key, value, mask=None):
        return super().forward(query / math.sqrt(self.h), key, value, mask)


class MultiHeadAttentionDeaf(MultiHeadedAttention):
    """Leaves the mask out."""

    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, value, None)


class MHAInverted(MHA):
    """Keeps the pads and hides the rest."""

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        pads = None if key_padding_mask is None else ~key_padding_mask
        return super().forward(query, key, value, pads, False, attn_mask)


class MultiHeadAttentionAcross(nn.Module):
    """Takes batch-first input for sequence-first: it attends across samples.

    x: (batch, length, width).
    """

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.inner = MHA(embed_dim, num_heads)

    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)


class CausalSelfAttention(MultiHeadSelfAttention):
    """Looks ahead, whatever its name says."""

    def forward(self, x):
        return super().forward(x)


class SelfAttentionMaskingQueries(MultiHeadSelfAttention):
    """Masks the rows and not the columns."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else mask.expand(-1, -1, x.size(1), -1).mT)


class FeedForward(PositionwiseFeedForward):
    """Has no activation."""

    def forward(self, x):
        return self.w_2(self.w_1(x))


class Embeddings(parts.Embeddings):
    """Scales by the width and not by its root."""

    def forward(self, x):
        return self.lut(x) * self.d_model


class EncoderLayer(parts.EncoderLayer):
    """Leaves out the residual connection around the feed-forward network."""

    def forward(self, x, mask):
        x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask)))
        return self.norm2(self.dropout(self.feed_forward(x)))


class DecoderLayer(parts.DecoderLayer):
    """Uses the mask of the source for the target."""

    def forward(self, x, enc_output, src_mask, tgt_mask):
        length = x.size(1)
        own = None if src_mask is None else src_mask[:, :, :1].expand(-1, length, length)
        return super().forward(x, enc_output, src_mask, own)
