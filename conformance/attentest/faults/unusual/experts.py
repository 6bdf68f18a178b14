"""Unusual implementations of the mixture of experts."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.member import module
from attentest_spec import Place, Sizes, Table


class Gated(nn.Module):
    """One expert: three matrices with numbers for names."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(width, inner, bias=False)
        self.w2 = nn.Linear(inner, width, bias=False)
        self.w3 = nn.Linear(width, inner, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        found: Tensor = self.w2(functional.silu(self.w1(x)) * self.w3(x))
        return found


class EveryExpert(nn.Module):
    """All experts at all positions; the weights of most are 0."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.count = sizes.chosen_experts
        self.gate = nn.Linear(sizes.d_model, sizes.experts, bias=False)
        self.experts = nn.ModuleList(Gated(sizes.d_model, sizes.d_ff) for _ in range(sizes.experts))

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        logits = self.gate(x)
        best, places = logits.topk(self.count, dim=-1)
        kept = torch.full_like(logits, float("-inf")).scatter(-1, places, best)
        weights = torch.softmax(kept, dim=-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return (outputs * weights.unsqueeze(-2)).sum(dim=-1)


class ExpertsRowByRow(nn.Module):
    """A loop over positions and their experts, with a shared expert behind a gate."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.count = sizes.chosen_experts
        self.gate = nn.Linear(sizes.d_model, sizes.experts, bias=False)
        self.experts = nn.ModuleList(Gated(sizes.d_model, sizes.d_ff) for _ in range(sizes.experts))
        self.shared = Gated(sizes.d_model, sizes.shared_inner or sizes.d_ff)
        self.shared_gate = nn.Linear(sizes.d_model, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        rows = [self._row(row) for row in x.flatten(0, -2)]
        return torch.stack(rows).view(x.shape)

    def _row(self, row: Tensor) -> Tensor:
        chances = functional.softmax(self.gate(row), dim=-1, dtype=torch.float32)
        weights, chosen = chances.topk(self.count)
        found: Tensor = torch.sigmoid(self.shared_gate(row)) * self.shared(row)
        for weight, number in zip(weights.to(row.dtype), chosen.tolist(), strict=True):
            found = found + weight * self.experts[number](row)
        return found


class StackedExperts(nn.Module):
    """Gates and values of all experts in one array, all experts by one product; sigmoid scores."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        count, width, inner = sizes.experts, sizes.d_model, sizes.d_ff
        self.count = sizes.chosen_experts
        self.router = nn.Parameter(torch.randn(width, count) / 4)
        self.balance = nn.Parameter(torch.zeros(count), requires_grad=False)
        self.gate_up = nn.Parameter(torch.randn(count, 2 * inner, width) / 4)
        self.down = nn.Parameter(torch.randn(count, inner, width) / 4)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        wide = torch.promote_types(x.dtype, torch.float32)
        scores = torch.sigmoid(x.to(wide) @ self.router.to(wide))
        chosen = (scores + self.balance).topk(self.count, dim=-1, sorted=False).indices
        weights = torch.zeros_like(scores).scatter(-1, chosen, scores.gather(-1, chosen))
        weights = 2.5 * weights / (weights.sum(dim=-1, keepdim=True) + 1e-20)
        gate, value = torch.einsum("...d,mfd->...mf", x, self.gate_up).chunk(2, dim=-1)
        outputs = torch.einsum("...mf,mfd->...md", functional.silu(gate) * value, self.down)
        return torch.einsum("...m,...md->...d", weights.to(x.dtype), outputs)


class SortedGroups(nn.Module):
    """Positions sorted by expert, one slice for each, and put back by the inverse order."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.count = sizes.chosen_experts
        self.router = nn.Linear(sizes.d_model, sizes.experts)
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(sizes.d_model, sizes.d_ff),
                nn.ReLU(),
                nn.Linear(sizes.d_ff, sizes.d_model),
            )
            for _ in range(sizes.experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        rows = x.flatten(0, -2)
        weights, chosen = torch.softmax(self.router(rows), dim=-1).topk(self.count, dim=-1)
        order = chosen.flatten().argsort(stable=True)
        sizes = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
        groups = torch.split(rows[order // self.count], sizes)
        outputs = torch.cat(
            [expert(group) for expert, group in zip(self.experts, groups, strict=True)]
        )
        back = outputs[order.argsort()].view(*chosen.shape, -1)
        return (back * weights[..., None]).sum(dim=1).view(x.shape)


_NUMBERED: Table = {
    "router": "gate",
    **{
        f"{canonical}.{name}": f"{own}.{number}"
        for canonical, own in (("experts.*", "experts.*"), ("shared_expert", "shared"))
        for name, number in (("gate", "w1"), ("outer", "w2"), ("inner", "w3"))
    },
    "shared_gate": "shared_gate",
}
_STACKED: Table = {
    "router.weight": Place("router", transpose=True),
    "router.bias": "balance",
    "experts.*.gate.weight": Place("gate_up[*]", part=(0, 2)),
    "experts.*.inner.weight": Place("gate_up[*]", part=(1, 2)),
    "experts.*.outer.weight": Place("down[*]", transpose=True),
}
_IN_SEQUENCE: Table = {
    "router": "router",
    "experts.*.inner": "experts.*.0",
    "experts.*.outer": "experts.*.2",
}

MEMBERS = (
    module(
        "mixture_of_experts",
        EveryExpert,
        "all experts at all positions, with weights of 0 for those that are not chosen",
        _NUMBERED,
        feed_forward_gate="gated",
        activation="silu",
        feed_forward_bias="none",
    ),
    module(
        "mixture_of_experts",
        ExpertsRowByRow,
        "experts in a loop over positions, scores in float32 and a gated shared expert",
        _NUMBERED,
        feed_forward_gate="gated",
        activation="silu",
        feed_forward_bias="none",
        routing_weights="as-scored",
        shared_expert="gated",
        routing_arithmetic="float32",
    ),
    module(
        "mixture_of_experts",
        StackedExperts,
        "all experts in one array, sigmoid scores, and a bias of the choice that is not trained",
        _STACKED,
        feed_forward_gate="gated",
        activation="silu",
        feed_forward_bias="none",
        router_scores="sigmoid",
        router_bias="in-choice-alone",
        routing_scale=2.5,
    ),
    module(
        "mixture_of_experts",
        SortedGroups,
        "positions sorted by expert, computed in slices and put back in order",
        _IN_SEQUENCE,
        router_bias="in-scores",
        routing_weights="as-scored",
    ),
)
