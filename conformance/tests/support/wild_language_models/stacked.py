"""No submodules: matrices (in, out) in a parameter dictionary, and functions."""

import torch
from torch import nn


def layer_norm(x, g, b, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    variance = x.var(-1, keepdim=True, unbiased=False)
    return g * (x - mean) / torch.sqrt(variance + eps) + b


def gelu(x):
    return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))


def attention(q, k, v, mask):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5 + mask, -1) @ v


class GPT2(nn.Module):
    def __init__(self, n_vocab, n_ctx, n_embd, n_head, n_layer):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"{n_head} heads do not divide a width of {n_embd}")
        self.n_head, self.n_layer, self.n_ctx = n_head, n_layer, n_ctx
        self.wte = nn.Parameter(0.02 * torch.randn(n_vocab, n_embd))
        self.wpe = nn.Parameter(0.01 * torch.randn(n_ctx, n_embd))
        shapes = {
            "ln_1_g": (n_embd,), "ln_1_b": (n_embd,), "ln_2_g": (n_embd,), "ln_2_b": (n_embd,),
            "attn_w": (n_embd, 3 * n_embd), "attn_b": (3 * n_embd,),
            "proj_w": (n_embd, n_embd), "proj_b": (n_embd,),
            "fc_w": (n_embd, 4 * n_embd), "fc_b": (4 * n_embd,),
            "out_w": (4 * n_embd, n_embd), "out_b": (n_embd,),
        }  # fmt: skip
        self.h = nn.ParameterDict(
            {
                f"{i}_{name}": nn.Parameter(0.02 * torch.randn(shape) + name.endswith("_g"))
                for i in range(n_layer)
                for name, shape in shapes.items()
            }
        )
        self.ln_f_g = nn.Parameter(torch.ones(n_embd))
        self.ln_f_b = nn.Parameter(torch.zeros(n_embd))

    def forward(self, inputs):
        length = inputs.shape[1]
        x = (
            nn.functional.embedding(inputs, self.wte)
            + self.wpe[torch.arange(length, device=inputs.device)]
        )
        mask = (1 - torch.tril(torch.ones(length, length, dtype=x.dtype, device=x.device))) * -1e10
        for i in range(self.n_layer):
            p = {
                name.split("_", 1)[1]: one
                for name, one in self.h.items()
                if name.startswith(f"{i}_")
            }
            u = layer_norm(x, p["ln_1_g"], p["ln_1_b"])
            qkv = u @ p["attn_w"] + p["attn_b"]
            heads = zip(*(one.chunk(self.n_head, -1) for one in qkv.chunk(3, -1)), strict=True)
            merged = torch.cat([attention(q, k, v, mask) for q, k, v in heads], -1)
            x = x + merged @ p["proj_w"] + p["proj_b"]
            u = layer_norm(x, p["ln_2_g"], p["ln_2_b"])
            x = x + gelu(u @ p["fc_w"] + p["fc_b"]) @ p["out_w"] + p["out_b"]
        return layer_norm(x, self.ln_f_g, self.ln_f_b) @ self.wte.T
