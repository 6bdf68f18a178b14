"""Mixtures of experts as they are written, all of them correct."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden_dim, bias=False)
        self.up_proj = nn.Linear(dim, hidden_dim, bias=False)
        self.down_proj = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class SparseMoeBlock(nn.Module):
    """Softmax over all in float32, renormalised, index_add, and the logits beside the output."""

    def __init__(self, hidden_size, intermediate_size, num_experts, top_k=2):
        super().__init__()
        self.num_experts, self.top_k = num_experts, top_k
        self.gate = nn.Linear(hidden_size, num_experts, bias=False)
        self.experts = nn.ModuleList(
            [SwiGLU(hidden_size, intermediate_size) for _ in range(num_experts)]
        )

    def forward(self, hidden_states):
        b, s, d = hidden_states.shape
        hidden_states = hidden_states.view(-1, d)
        router_logits = self.gate(hidden_states)
        weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        weights, selected = torch.topk(weights, self.top_k, dim=-1)
        weights /= weights.sum(dim=-1, keepdim=True)
        weights = weights.to(hidden_states.dtype)
        out = torch.zeros_like(hidden_states)
        mask = F.one_hot(selected, num_classes=self.num_experts).permute(2, 1, 0)
        for i, expert in enumerate(self.experts):
            idx, top_x = torch.where(mask[i])
            out.index_add_(0, top_x, expert(hidden_states[top_x]) * weights[top_x, idx, None])
        return out.view(b, s, d), router_logits


class Expert(nn.Module):
    def __init__(self, n_embd, dropout):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd),
            nn.ReLU(),
            nn.Linear(4 * n_embd, n_embd),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)


class MoE(nn.Module):
    """A softmax over the best logits, minus infinity elsewhere, and a router with a bias."""

    def __init__(self, n_embd, num_experts, top_k, dropout=0.0):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(n_embd, num_experts)
        self.experts = nn.ModuleList([Expert(n_embd, dropout) for _ in range(num_experts)])

    def forward(self, x):
        logits = self.router(x)
        top, indices = logits.topk(self.top_k, dim=-1)
        sparse = torch.full_like(logits, float("-inf")).scatter(-1, indices, top)
        gates = F.softmax(sparse, dim=-1)
        output = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            here = (indices == i).any(dim=-1)
            if here.any():
                output[here] += gates[here][:, i : i + 1] * expert(x[here])
        return output


@dataclass
class MoEConfig:
    dim: int = 32
    moe_inter_dim: int = 64
    intermediate_size: int = 64
    n_routed_experts: int = 8
    num_experts_per_tok: int = 2
    routed_scaling_factor: float = 2.5


class DeepMoE(nn.Module):
    """Sigmoid scores, a bias of the choice, a factor and a shared expert; weights in arrays."""

    def __init__(self, config: MoEConfig):
        super().__init__()
        n, d, f = config.n_routed_experts, config.dim, config.intermediate_size
        self.k, self.factor = config.num_experts_per_tok, config.routed_scaling_factor
        self.router = nn.Parameter(torch.randn(n, d) * 0.02)
        self.expert_bias = nn.Parameter(torch.zeros(n), requires_grad=False)
        self.gate_up_proj = nn.Parameter(torch.randn(n, 2 * f, d) * 0.02)
        self.down_proj = nn.Parameter(torch.randn(n, d, f) * 0.02)
        self.shared_expert = SwiGLU(d, f)

    def forward(self, x):
        scores = (x @ self.router.T).sigmoid()
        chosen = (scores + self.expert_bias).topk(self.k, dim=-1)[1]
        weights = scores.gather(-1, chosen)
        weights = self.factor * weights / (weights.sum(-1, keepdim=True) + 1e-20)
        gates = torch.zeros_like(scores).scatter(-1, chosen, weights)
        gate, up = torch.einsum("bsd,efd->bsef", x, self.gate_up_proj).chunk(2, dim=-1)
        each = torch.einsum("bsef,edf->bsed", F.silu(gate) * up, self.down_proj)
        return torch.einsum("bse,bsed->bsd", gates, each) + self.shared_expert(x)


class GatedSharedMoE(nn.Module):
    """Scores as they are, and a shared expert of its own width behind a gate."""

    def __init__(self, d_model, d_ff, shared_d_ff, n_experts, n_experts_per_tok):
        super().__init__()
        self.k = n_experts_per_tok
        self.gate = nn.Linear(d_model, n_experts, bias=False)
        self.experts = nn.ModuleList([SwiGLU(d_model, d_ff) for _ in range(n_experts)])
        self.shared_expert = SwiGLU(d_model, shared_d_ff)
        self.shared_expert_gate = nn.Linear(d_model, 1, bias=False)

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weights, chosen = self.gate(flat).softmax(-1).topk(self.k)
        y = torch.sigmoid(self.shared_expert_gate(flat)) * self.shared_expert(flat)
        for e, expert in enumerate(self.experts):
            token, slot = (chosen == e).nonzero(as_tuple=True)
            y = y.index_add(0, token, weights[token, slot].unsqueeze(-1) * expert(flat[token]))
        return y.view_as(x)
