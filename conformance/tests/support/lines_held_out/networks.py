"""Feed-forward networks, norms and residuals in unusual words."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class FeedForward(nn.Module):
    """Positions are flattened for addmm; weights as (in, out), as in Conv1D."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(d_model, d_ff) * 0.02)
        self.b1 = nn.Parameter(torch.zeros(d_ff))
        self.w2 = nn.Parameter(torch.randn(d_ff, d_model) * 0.02)
        self.b2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        flat = x.reshape(-1, x.size(-1))
        up = torch.addmm(self.b1, flat, self.w1)
        active = torch.where(up > 0, up, torch.zeros_like(up))
        down = torch.addmm(self.b2, active, self.w2)
        return down.reshape(x.shape)


class MLP(nn.Module):
    """Names of a published decoder."""

    def __init__(self, n_embd, d_ff):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, d_ff)
        self.c_proj = nn.Linear(d_ff, n_embd)
        self.act = nn.ReLU()

    def forward(self, x):
        x = self.c_fc(x)
        x = self.act(x)
        return self.c_proj(x)


class LayerNorm(nn.Module):
    """Uses var_mean in double precision."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        y = x.to(torch.float64)
        variance, average = torch.var_mean(y, dim=-1, correction=0, keepdim=True)
        z = y.sub(average).mul(variance.add(self.eps).rsqrt())
        return torch.add(z * self.scale, self.shift).type_as(x)


class AddAndNorm(nn.Module):
    """The norm as a function with bare parameters."""

    def __init__(self, d_model, dropout=0.0):
        super().__init__()
        self.weight, self.bias = (
            nn.Parameter(torch.ones(d_model)),
            nn.Parameter(torch.zeros(d_model)),
        )
        self.rate = dropout

    def forward(self, x, sublayer):
        update = F.dropout(sublayer(x), self.rate, self.training)
        update = update + x
        return F.layer_norm(update, update.shape[-1:], self.weight, self.bias)
