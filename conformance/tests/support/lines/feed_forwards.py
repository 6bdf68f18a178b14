"""Position-wise feed-forward networks."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.w_1(x)
        hidden = self.dropout(hidden.relu())
        return self.w_2(hidden)


class FeedForwardSequential(nn.Module):
    def __init__(self, n_embd, d_ff):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_embd, d_ff),
            nn.ReLU(),
            nn.Linear(d_ff, n_embd),
        )

    def forward(self, x):
        return self.net(x)


class MatrixFeedForward(nn.Module):
    """Weights as (in, out), multiplied from the right."""

    def __init__(self, d_model, d_mlp):
        super().__init__()
        self.W_in = nn.Parameter(torch.randn(d_model, d_mlp) * 0.1)
        self.b_in = nn.Parameter(torch.zeros(d_mlp))
        self.W_out = nn.Parameter(torch.randn(d_mlp, d_model) * 0.1)
        self.b_out = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        pre = torch.einsum("bld,df->blf", x, self.W_in) + self.b_in
        post = torch.clamp(pre, min=0)
        return torch.einsum("blf,fd->bld", post, self.W_out) + self.b_out


class ConvFeedForward(nn.Module):
    """Two convolutions of width one."""

    def __init__(self, d_model, d_hid):
        super().__init__()
        self.conv1 = nn.Conv1d(d_model, d_hid, 1)
        self.conv2 = nn.Conv1d(d_hid, d_model, 1)

    def forward(self, x):
        h = x.transpose(1, 2)
        h = F.relu(self.conv1(h))
        h = self.conv2(h)
        return h.transpose(1, 2)
