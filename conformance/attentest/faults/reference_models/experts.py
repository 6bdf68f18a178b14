"""The mixtures of the two reference models: expert by expert, and by stacked matrices."""

import torch
from torch import Tensor, nn

from attentest.faults.reference_models.hooks import Hooks
from attentest.faults.reference_models.modules import Node


class PlainExperts(Hooks):
    """A list of networks; each takes the rows that are routed to it, and puts its output back."""

    def make_experts(self) -> Node:
        """Build the router and the experts."""
        biased = self.choices.router_bias != "none"
        return Node(
            self,
            "mixture_of_experts",
            router=self.make_linear(self.sizes.d_model, self.sizes.experts, bias=biased),
            experts=nn.ModuleList(self.make_feed_forward() for _ in range(self.sizes.experts)),
        )

    def router_matrix(self, module: Node) -> Tensor:
        """Return the weight (M, D) of the router."""
        weight: Tensor = module.router.weight
        return weight

    def router_bias(self, module: Node) -> Tensor:
        """Return the bias (M,) of a router that has one."""
        bias: Tensor = module.router.bias
        return bias

    def router_scores(self, logits: Tensor) -> Tensor:
        """Return the scores (R, M) of all experts."""
        if self.choices.router_scores == "sigmoid":
            return torch.sigmoid(logits)
        return torch.softmax(logits, dim=-1)

    def greatest(self, ranked: Tensor, count: int) -> Tensor:
        """Return the places (R, `count`) of the greatest numbers of (R, M), in order."""
        return ranked.topk(count, dim=-1).indices

    def renormalise(self, weights: Tensor) -> Tensor:
        """Return the weights (R, K) divided by their sum."""
        return weights / weights.sum(dim=-1, keepdim=True)

    def ask_experts(self, module: Node, rows: Tensor, chosen: Tensor) -> Tensor:
        """Return the outputs (R, K, D) of the experts with the numbers `chosen` (R, K)."""
        outputs = rows.new_zeros(*chosen.shape, rows.shape[-1])
        for number, expert in enumerate(module.experts):
            places, ranks = torch.where(chosen == number)
            outputs[places, ranks] = self.feed_forward(expert, rows[places])
        return outputs

    def sum_experts(self, outputs: Tensor, weights: Tensor) -> Tensor:
        """Return the sums (R, D) of outputs (R, K, D) times weights (R, K)."""
        return (outputs * weights[..., None]).sum(dim=1)


class FusedExperts(Hooks):
    """One array for the matrices of all experts, of which every row takes its own."""

    def make_experts(self) -> Node:
        """Build the router and the experts."""
        count, width, inner = self.sizes.experts, self.sizes.d_model, self.sizes.d_ff
        biased = self.choices.feed_forward_bias == "present"
        node = Node(self, "mixture_of_experts")
        node.router = self.make_linear(width, count, bias=self.choices.router_bias != "none")
        shapes = {"inner": (width, inner), "outer": (inner, width)}
        for name, shape in (shapes | ({"gate": (width, inner)} if self.has_gate() else {})).items():
            stacked = nn.Parameter(torch.empty(count, *shape))
            for matrix in stacked.data:
                self.initialise(matrix)
            offsets = nn.Parameter(torch.zeros(count, shape[1])) if biased else None
            setattr(node, f"{name}_matrices", stacked)
            setattr(node, f"{name}_offsets", offsets)
        return node

    def router_matrix(self, module: Node) -> Tensor:
        """Return the weight (M, D) of the router."""
        weight: Tensor = module.router.matrix.mT
        return weight

    def router_bias(self, module: Node) -> Tensor:
        """Return the bias (M,) of a router that has one."""
        bias: Tensor = module.router.offset
        return bias

    def router_scores(self, logits: Tensor) -> Tensor:
        """Return the scores (R, M) of all experts."""
        if self.choices.router_scores == "sigmoid":
            return (1.0 + torch.tanh(0.5 * logits)) * 0.5
        return torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))

    def greatest(self, ranked: Tensor, count: int) -> Tensor:
        """Return the places (R, `count`) of the greatest numbers of (R, M), in order."""
        return ranked.argsort(dim=-1, descending=True)[..., :count]

    def renormalise(self, weights: Tensor) -> Tensor:
        """Return the weights (R, K) times the inverse of their sum."""
        return weights * weights.sum(dim=-1, keepdim=True).reciprocal()

    def ask_experts(self, module: Node, rows: Tensor, chosen: Tensor) -> Tensor:
        """Return the outputs (R, K, D) of the experts with the numbers `chosen` (R, K)."""
        spread = rows[:, None].expand(*chosen.shape, -1)
        hidden = self._stacked(module, "inner", chosen, spread)
        if self.has_gate():
            hidden = self.join_gate(self._stacked(module, "gate", chosen, spread), hidden)
        else:
            hidden = self.activation(hidden)
        return self._stacked(module, "outer", chosen, self.drop_inner(module, hidden))

    def _stacked(self, module: Node, name: str, chosen: Tensor, x: Tensor) -> Tensor:
        """Apply the map `name` of the experts (R, K) to x (R, K, inputs)."""
        product = torch.einsum("rki,rkio->rko", x, getattr(module, f"{name}_matrices")[chosen])
        offsets: Tensor | None = getattr(module, f"{name}_offsets")
        return product if offsets is None else product + offsets[chosen]

    def sum_experts(self, outputs: Tensor, weights: Tensor) -> Tensor:
        """Return the sums (R, D) of outputs (R, K, D) times weights (R, K)."""
        return torch.einsum("rk,rkd->rd", weights, outputs)
