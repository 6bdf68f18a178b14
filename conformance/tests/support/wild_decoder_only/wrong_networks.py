"""The same networks, each with one mistake."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  # as people write it


class Gated(nn.Module):
    def __init__(self, hidden_size: int, intermediate_size: int):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)


class ExchangedMLP(Gated):
    def forward(self, x):
        return self.down_proj(F.silu(self.up_proj(x)) * self.gate_proj(x))  # wrong


class ProductMLP(Gated):
    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x) * self.up_proj(x)))  # wrong


class SummedMLP(Gated):
    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) + self.up_proj(x))  # wrong


class BothMLP(Gated):
    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * F.silu(self.up_proj(x)))  # wrong


class ItselfMLP(Gated):
    def forward(self, x):
        gate = self.gate_proj(x)
        return self.down_proj(F.silu(gate) * gate)  # wrong


class PositionMLP(Gated):
    def forward(self, x):
        gate = F.silu(self.gate_proj(x)).roll(1, dims=1)  # wrong
        return self.down_proj(gate * self.up_proj(x))


class DetachedMLP(Gated):
    def forward(self, x):
        gate = F.silu(self.gate_proj(x)).detach()  # wrong
        return self.down_proj(gate * self.up_proj(x))


class BetaMLP(Gated):
    def forward(self, x):
        gate = self.gate_proj(x)
        return self.down_proj(gate * torch.sigmoid(1.25 * gate) * self.up_proj(x))  # wrong


class LinearMLP(Gated):
    def forward(self, x):
        return self.down_proj(self.gate_proj(x) * self.up_proj(x))  # wrong


class LeftOutMLP(Gated):
    def forward(self, x):
        return self.down_proj(F.silu(self.up_proj(x)))  # wrong
