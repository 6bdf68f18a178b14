"""A model of a namespace of options: time first inside, halves of sines and cosines, one pad id."""

import math

import torch
from torch import nn
from torch.nn import functional


def sinusoid(length, dim):
    half = dim // 2
    freq = torch.exp(torch.arange(half, dtype=torch.float64) * -(math.log(10000) / half))
    angle = torch.arange(length, dtype=torch.float64)[:, None] * freq[None]
    return torch.cat([angle.sin(), angle.cos()], 1)


class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.dropout = dropout

    def forward(self, query, key, key_padding_mask=None, attn_mask=None):
        time, batch, width = query.shape
        reach = key.shape[0]
        q = (
            (self.q_proj(query) * self.head_dim**-0.5)
            .contiguous()
            .view(time, batch * self.num_heads, -1)
            .transpose(0, 1)
        )
        k = self.k_proj(key).contiguous().view(reach, batch * self.num_heads, -1).transpose(0, 1)
        v = self.v_proj(key).contiguous().view(reach, batch * self.num_heads, -1).transpose(0, 1)
        w = torch.bmm(q, k.transpose(1, 2))
        if attn_mask is not None:
            w = w + attn_mask
        if key_padding_mask is not None:
            w = (
                w.view(batch, self.num_heads, time, reach)
                .masked_fill(key_padding_mask[:, None, None], float("-inf"))
                .view(-1, time, reach)
            )
        w = functional.dropout(w.softmax(-1), self.dropout, self.training)
        out = torch.bmm(w, v).transpose(0, 1).contiguous().view(time, batch, width)
        return self.out_proj(out)


class EncoderLayer(nn.Module):
    def __init__(self, args):
        super().__init__()
        d = args.encoder_embed_dim
        self.self_attn = Attention(d, args.encoder_attention_heads, args.attention_dropout)
        self.self_attn_layer_norm = nn.LayerNorm(d)
        self.fc1 = nn.Linear(d, args.encoder_ffn_embed_dim)
        self.fc2 = nn.Linear(args.encoder_ffn_embed_dim, d)
        self.final_layer_norm = nn.LayerNorm(d)
        self.dropout = args.dropout

    def forward(self, x, padding):
        x = self.self_attn_layer_norm(
            x + functional.dropout(self.self_attn(x, x, padding), self.dropout, self.training)
        )
        y = self.fc2(functional.relu(self.fc1(x)))
        return self.final_layer_norm(x + functional.dropout(y, self.dropout, self.training))


class DecoderLayer(nn.Module):
    def __init__(self, args):
        super().__init__()
        d = args.decoder_embed_dim
        self.self_attn = Attention(d, args.decoder_attention_heads, args.attention_dropout)
        self.self_attn_layer_norm = nn.LayerNorm(d)
        self.encoder_attn = Attention(d, args.decoder_attention_heads, args.attention_dropout)
        self.encoder_attn_layer_norm = nn.LayerNorm(d)
        self.fc1 = nn.Linear(d, args.decoder_ffn_embed_dim)
        self.fc2 = nn.Linear(args.decoder_ffn_embed_dim, d)
        self.final_layer_norm = nn.LayerNorm(d)
        self.dropout = args.dropout

    def forward(self, x, memory, memory_padding, future, padding):
        def drop(t):
            return functional.dropout(t, self.dropout, self.training)

        x = self.self_attn_layer_norm(x + drop(self.self_attn(x, x, padding, future)))
        x = self.encoder_attn_layer_norm(x + drop(self.encoder_attn(x, memory, memory_padding)))
        return self.final_layer_norm(x + drop(self.fc2(functional.relu(self.fc1(x)))))


class TransformerModel(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.padding_idx = args.pad
        self.embed_scale = math.sqrt(args.encoder_embed_dim)
        self.encoder_embed_tokens = nn.Embedding(args.src_vocab_size, args.encoder_embed_dim)
        self.decoder_embed_tokens = nn.Embedding(args.tgt_vocab_size, args.decoder_embed_dim)
        self.register_buffer(
            "positions", sinusoid(args.max_positions, args.encoder_embed_dim), persistent=False
        )
        self.encoder_layers = nn.ModuleList(
            [EncoderLayer(args) for _ in range(args.encoder_layers)]
        )
        self.decoder_layers = nn.ModuleList(
            [DecoderLayer(args) for _ in range(args.decoder_layers)]
        )
        self.output_projection = nn.Linear(args.decoder_embed_dim, args.tgt_vocab_size, bias=False)
        self.dropout = args.dropout

    def embed(self, table, tokens):
        x = self.embed_scale * table(tokens) + self.positions[: tokens.size(1)].to(table.weight)
        return functional.dropout(x, self.dropout, self.training).transpose(0, 1)

    def forward(self, src_tokens, prev_output_tokens):
        src_padding = src_tokens.eq(self.padding_idx)
        memory = self.embed(self.encoder_embed_tokens, src_tokens)
        for layer in self.encoder_layers:
            memory = layer(memory, src_padding)
        time = prev_output_tokens.size(1)
        x = self.embed(self.decoder_embed_tokens, prev_output_tokens)
        future = torch.triu(
            torch.full((time, time), float("-inf"), device=x.device, dtype=x.dtype), 1
        )
        padding = prev_output_tokens.eq(self.padding_idx)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding, future, padding)
        return self.output_projection(x.transpose(0, 1))
