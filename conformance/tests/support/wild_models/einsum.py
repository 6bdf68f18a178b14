"""Projections as raw parameters by head, multiplied with einsum; masks are made inside."""

import torch
from torch import einsum, nn


class HeadedAttention(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        width = d_model // n_head
        for name in ("W_Q", "W_K", "W_V"):
            setattr(self, name, nn.Parameter(torch.randn(n_head, d_model, width) * 0.02))
        self.W_O = nn.Parameter(torch.randn(n_head, width, d_model) * 0.02)
        self.scale = width**-0.5

    def forward(self, x, y, hide):
        q = einsum("b q d, h d e -> b h q e", x, self.W_Q)
        k = einsum("b k d, h d e -> b h k e", y, self.W_K)
        v = einsum("b k d, h d e -> b h k e", y, self.W_V)
        scores = einsum("b h q e, b h k e -> b h q k", q, k) * self.scale
        pattern = scores.masked_fill(hide, float("-inf")).softmax(-1)
        z = einsum("b h q k, b h k e -> b h q e", pattern, v)
        return einsum("b h q e, h e d -> b q d", z, self.W_O)


class Norm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return x / (x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt() * self.w + self.b


class MLP(nn.Module):
    def __init__(self, d_model, d_mlp):
        super().__init__()
        self.W_in = nn.Parameter(torch.randn(d_model, d_mlp) * 0.02)
        self.b_in = nn.Parameter(torch.zeros(d_mlp))
        self.W_out = nn.Parameter(torch.randn(d_mlp, d_model) * 0.02)
        self.b_out = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return torch.relu(x @ self.W_in + self.b_in) @ self.W_out + self.b_out


class Block(nn.Module):
    def __init__(self, d_model, n_head, d_mlp, cross):
        super().__init__()
        self.ln1, self.attn = Norm(d_model), HeadedAttention(d_model, n_head)
        if cross:
            self.ln2, self.cross_attn = Norm(d_model), HeadedAttention(d_model, n_head)
        self.ln3, self.mlp = Norm(d_model), MLP(d_model, d_mlp)

    def forward(self, x, hide, memory=None, hide_memory=None):
        inner = self.ln1(x)
        x = x + self.attn(inner, inner, hide)
        if memory is not None:
            x = x + self.cross_attn(self.ln2(x), memory, hide_memory)
        return x + self.mlp(self.ln3(x))


class Seq2Seq(nn.Module):
    def __init__(
        self,
        n_src_vocab,
        n_trg_vocab,
        src_pad_idx,
        trg_pad_idx,
        d_model=512,
        n_head=8,
        n_layers=6,
        d_mlp=2048,
        n_ctx=200,
    ):
        super().__init__()
        self.src_pad, self.trg_pad = src_pad_idx, trg_pad_idx
        self.W_E_src = nn.Embedding(n_src_vocab, d_model)
        self.W_E_trg = nn.Embedding(n_trg_vocab, d_model)
        self.W_pos_src = nn.Embedding(n_ctx, d_model)
        self.W_pos_trg = nn.Embedding(n_ctx, d_model)
        self.enc_blocks = nn.ModuleList(
            [Block(d_model, n_head, d_mlp, False) for _ in range(n_layers)]
        )
        self.dec_blocks = nn.ModuleList(
            [Block(d_model, n_head, d_mlp, True) for _ in range(n_layers)]
        )
        self.ln_src, self.ln_trg = Norm(d_model), Norm(d_model)
        self.W_U = nn.Linear(d_model, n_trg_vocab, bias=False)

    def forward(self, src, trg):
        hide_src = (src == self.src_pad)[:, None, None, :]
        length = trg.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=trg.device).triu(1)
        hide_trg = (trg == self.trg_pad)[:, None, None, :] | future
        x = self.W_E_src(src) + self.W_pos_src.weight[: src.shape[1]]
        for block in self.enc_blocks:
            x = block(x, hide_src)
        x = self.ln_src(x)
        y = self.W_E_trg(trg) + self.W_pos_trg.weight[:length]
        for block in self.dec_blocks:
            y = block(y, hide_trg, x, hide_src)
        return self.W_U(self.ln_trg(y))
