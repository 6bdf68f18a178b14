"""Keys and values in one projection, no biases, norms first, padding given as (B, L) booleans."""

import torch
from torch import nn


def exists(x):
    return x is not None


class Attend(nn.Module):
    def __init__(self, dim, heads, causal=False):
        super().__init__()
        self.heads, self.scale, self.causal = heads, (dim // heads) ** -0.5, causal
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, dim * 2, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, context=None, mask=None):
        source = context if exists(context) else x
        q, (k, v) = self.to_q(x), self.to_kv(source).chunk(2, dim=-1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        sim = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        if exists(mask):
            sim = sim.masked_fill(~mask[:, None, None, :], -torch.finfo(sim.dtype).max)
        if self.causal:
            i, j = sim.shape[-2:]
            later = torch.ones(i, j, dtype=torch.bool, device=x.device).triu(j - i + 1)
            sim = sim.masked_fill(later, -torch.finfo(sim.dtype).max)
        out = torch.einsum("bhij,bhjd->bhid", sim.softmax(dim=-1), v)
        return self.to_out(out.transpose(1, 2).flatten(2))


class AttentionLayers(nn.Module):
    def __init__(self, dim, depth, heads, ff_dim, cross=False):
        super().__init__()
        self.cross = cross
        self.layers = nn.ModuleList()
        for _ in range(depth):
            parts = {"norm_sa": nn.LayerNorm(dim), "self_attn": Attend(dim, heads, causal=cross)}
            if cross:
                parts |= {"norm_ca": nn.LayerNorm(dim), "cross_attn": Attend(dim, heads)}
            parts |= {
                "norm_ff": nn.LayerNorm(dim),
                "ff": nn.Sequential(nn.Linear(dim, ff_dim), nn.GELU(), nn.Linear(ff_dim, dim)),
            }
            self.layers.append(nn.ModuleDict(parts))
        self.final_norm = nn.LayerNorm(dim)

    def forward(self, x, context=None, mask=None, context_mask=None):
        for layer in self.layers:
            x = x + layer["self_attn"](layer["norm_sa"](x), mask=mask)
            if self.cross:
                x = x + layer["cross_attn"](layer["norm_ca"](x), context, mask=context_mask)
            x = x + layer["ff"](layer["norm_ff"](x))
        return self.final_norm(x)


class Tokens(nn.Module):
    def __init__(self, num_tokens, dim, max_seq_len):
        super().__init__()
        self.token_emb = nn.Embedding(num_tokens, dim)
        self.pos_emb = nn.Embedding(max_seq_len, dim)

    def forward(self, ids):
        return self.token_emb(ids) + self.pos_emb(torch.arange(ids.shape[1], device=ids.device))


class XTransformer(nn.Module):
    def __init__(self, *, dim, depth, heads, enc_num_tokens, dec_num_tokens, ff_dim, max_seq_len):
        super().__init__()
        self.enc_tokens = Tokens(enc_num_tokens, dim, max_seq_len)
        self.dec_tokens = Tokens(dec_num_tokens, dim, max_seq_len)
        self.encoder = AttentionLayers(dim, depth, heads, ff_dim)
        self.decoder = AttentionLayers(dim, depth, heads, ff_dim, cross=True)
        self.to_logits = nn.Linear(dim, dec_num_tokens, bias=False)

    def forward(self, src, tgt, src_key_mask=None, tgt_key_mask=None):
        memory = self.encoder(self.enc_tokens(src), mask=src_key_mask)
        states = self.decoder(
            self.dec_tokens(tgt), memory, mask=tgt_key_mask, context_mask=src_key_mask
        )
        return self.to_logits(states)
