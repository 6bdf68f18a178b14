"""The other parts of a Transformer as people write them, all sound."""

import math

import torch
from multi_head_attention import MultiHeadedAttention
from torch import nn
from torch.nn import functional


class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        wide = torch.promote_types(x.dtype, torch.float32)
        centred = x.to(wide) - x.to(wide).mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        normal = centred / torch.sqrt(variance + self.eps)
        return (self.a_2 * normal + self.b_2).to(x.dtype)


class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.w_2(self.dropout(functional.relu(self.w_1(x))))


class Mlp(nn.Module):
    def __init__(self, dim, mlp_ratio=4.0, act_layer=nn.GELU, drop=0.0):
        super().__init__()
        inner = int(dim * mlp_ratio)
        self.fc1 = nn.Linear(dim, inner)
        self.act = act_layer()
        self.fc2 = nn.Linear(inner, dim)
        self.drop = nn.Dropout(drop)

    def forward(self, inputs):
        return self.drop(self.fc2(self.drop(self.act(self.fc1(inputs)))))


class MLP(nn.Module):
    def __init__(self, n_embd):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd)
        self.c_proj = nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x)))


class FeedForward(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim):
        super().__init__()
        self.inner = nn.Linear(input_dim, hidden_dim)
        self.outer = nn.Linear(hidden_dim, output_dim)

    def forward(self, features):
        return self.outer(torch.relu(self.inner(features)))


def waves(length, width):
    position = torch.arange(length, dtype=torch.float64)[:, None]
    power = torch.arange(0, width, 2, dtype=torch.float64) / width
    angle = position / 10000.0**power
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : width // 2]
    return table


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=5000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", waves(max_len, d_model).unsqueeze(0))

    def forward(self, x):
        if x.size(1) > self.pe.size(1):
            raise ValueError(f"{x.size(1)} positions; the table has {self.pe.size(1)}")
        return self.dropout(x + self.pe[:, : x.size(1)])


class SequenceFirstPositionalEncoding(nn.Module):
    """Sequence first."""

    def __init__(self, d_model, dropout=0.1, max_len=5000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", waves(max_len, d_model).unsqueeze(1))

    def forward(self, x):
        """Add positions to x, shaped [seq_len, batch_size, embedding_dim]."""
        if x.size(0) > self.pe.size(0):
            raise ValueError(f"{x.size(0)} positions; the table has {self.pe.size(0)}")
        return self.dropout(x + self.pe[: x.size(0)])


class Embeddings(nn.Module):
    def __init__(self, d_model, vocab):
        super().__init__()
        self.lut = nn.Embedding(vocab, d_model)
        self.d_model = d_model

    def forward(self, x):
        return self.lut(x) * math.sqrt(self.d_model)


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, emb_size):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_size)

    def forward(self, token_ids):
        return self.embedding(token_ids)


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout):
        super().__init__()
        self.self_attn = MultiHeadedAttention(num_heads, d_model, dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class TransformerEncoderBlock(nn.Module):
    """Norm first, over sequences (seq, batch, width)."""

    def __init__(self, embed_dim, nhead, dim_feedforward=2048, p=0.1):
        super().__init__()
        if embed_dim % nhead:
            raise ValueError(f"{embed_dim} cannot be divided among {nhead} heads")
        self.attn = nn.MultiheadAttention(embed_dim, nhead, dropout=p)
        self.ln_1 = nn.LayerNorm(embed_dim)
        self.ln_2 = nn.LayerNorm(embed_dim)
        self.fc1 = nn.Linear(embed_dim, dim_feedforward)
        self.fc2 = nn.Linear(dim_feedforward, embed_dim)
        self.drop = nn.Dropout(p)

    def forward(self, src, src_key_padding_mask=None):
        y = self.ln_1(src)
        y, _ = self.attn(y, y, y, key_padding_mask=src_key_padding_mask, need_weights=False)
        src = src + self.drop(y)
        return src + self.drop(self.fc2(self.drop(functional.gelu(self.fc1(self.ln_2(src))))))


class SublayerConnection(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))


class Generator(nn.Module):
    def __init__(self, d_model, vocab):
        super().__init__()
        self.proj = nn.Linear(d_model, vocab)

    def forward(self, x):
        return functional.log_softmax(self.proj(x), dim=-1)


class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout):
        super().__init__()
        self.self_attn = MultiHeadedAttention(heads, d_model, dropout)
        self.cross_attn = MultiHeadedAttention(heads, d_model, dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, enc_output, src_mask, tgt_mask):
        x = self.norm1(x + self.dropout(self.self_attn(x, x, x, tgt_mask)))
        x = self.norm2(x + self.dropout(self.cross_attn(x, enc_output, enc_output, src_mask)))
        return self.norm3(x + self.dropout(self.feed_forward(x)))


class TransformerBlock(nn.Module):
    """An encoder layer whose inner width is a whole multiple of the model's."""

    def __init__(self, embed_size, heads, dropout, forward_expansion):
        super().__init__()
        self.attention = MultiHeadedAttention(heads, embed_size, dropout)
        self.norm1 = nn.LayerNorm(embed_size)
        self.norm2 = nn.LayerNorm(embed_size)
        self.feed_forward = nn.Sequential(
            nn.Linear(embed_size, forward_expansion * embed_size),
            nn.ReLU(),
            nn.Linear(forward_expansion * embed_size, embed_size),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask):
        x = self.dropout(self.norm1(self.attention(x, x, x, mask) + x))
        return self.dropout(self.norm2(self.feed_forward(x) + x))
