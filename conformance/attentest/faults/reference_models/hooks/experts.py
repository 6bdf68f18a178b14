"""The hooks of the mixture of experts: scores, choice, weights, experts and the shared expert."""

from abc import abstractmethod

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.sublayers import FeedForwardHooks
from attentest.faults.reference_models.modules import Node


class ExpertHooks(FeedForwardHooks):
    """Routing of R rows to K of M experts, step by step."""

    def make_mixture(self) -> Node:
        """Build the router, the experts, and the shared expert where there is one."""
        self.check_sizes("d_model", "d_ff", "experts", "chosen_experts")
        if self.sizes.chosen_experts > self.sizes.experts:
            raise ValueError(
                f"Of {self.sizes.experts} experts {self.sizes.chosen_experts} cannot be chosen."
            )
        node = self.make_experts()
        if self.choices.shared_expert != "none":
            node.shared_expert = self.make_shared_expert()
        if self.choices.shared_expert == "gated":
            node.shared_gate = self.make_linear(self.sizes.d_model, 1, bias=False)
        return node

    @abstractmethod
    def make_experts(self) -> Node:
        """Build the router and the experts, as a mixture without a shared expert."""

    def make_shared_expert(self) -> Node:
        """Build the feed-forward network of all rows, which may have another inner width."""
        own = self.sizes.shared_inner or self.sizes.d_ff
        return type(self)(self.sizes.but(d_ff=own), self.choices).make_feed_forward()

    def mixture_of_experts(self, module: Node, x: Tensor) -> Tensor:
        """Return the weighted sum of the experts that every row of x is routed to."""
        rows = self.flatten_rows(x)
        scores = self.router_scores(self.router_logits(module, self.router_input(rows)))
        chosen = self.choose_experts(self.ranked_scores(module, scores))
        weights = self.routing_weights(scores, chosen)
        mixed = self.mix_experts(module, rows, chosen, self.scale_weights(weights).to(x.dtype))
        return self.restore_rows(self.add_shared(module, rows, mixed), x)

    def flatten_rows(self, x: Tensor) -> Tensor:
        """Return x (.., D) as rows (R, D)."""
        return x.reshape(-1, x.shape[-1])

    def restore_rows(self, rows: Tensor, x: Tensor) -> Tensor:
        """Return rows (R, D) in the shape of x."""
        return rows.reshape(x.shape)

    def router_input(self, rows: Tensor) -> Tensor:
        """Return the rows in the precision of the scores."""
        half = rows.dtype in (torch.float16, torch.bfloat16)
        return rows.float() if half or self.choices.routing_arithmetic == "float32" else rows

    @abstractmethod
    def router_matrix(self, module: Node) -> Tensor:
        """Return the weight (M, D) of the router."""

    @abstractmethod
    def router_bias(self, module: Node) -> Tensor:
        """Return the bias (M,) of a router that has one."""

    def router_logits(self, module: Node, rows: Tensor) -> Tensor:
        """Return the logits (R, M) of rows (R, D)."""
        logits = rows @ self.router_matrix(module).to(rows.dtype).T
        if self.choices.router_bias != "in-scores":
            return logits
        return logits + self.router_bias(module).to(rows.dtype)

    @abstractmethod
    def router_scores(self, logits: Tensor) -> Tensor:
        """Return the scores (R, M) of all experts."""

    def ranked_scores(self, module: Node, scores: Tensor) -> Tensor:
        """Return the numbers (R, M) of which the greatest are chosen."""
        if self.choices.router_bias != "in-choice-alone":
            return scores
        return scores + self.router_bias(module).to(scores.dtype)

    def choose_experts(self, ranked: Tensor) -> Tensor:
        """Return the numbers (R, K) of the chosen experts, the greatest first."""
        return self.greatest(ranked, self.sizes.chosen_experts)

    @abstractmethod
    def greatest(self, ranked: Tensor, count: int) -> Tensor:
        """Return the places (R, `count`) of the greatest numbers of (R, M), in order."""

    def routing_weights(self, scores: Tensor, chosen: Tensor) -> Tensor:
        """Return the weights (R, K) of the chosen experts."""
        weights = scores.gather(-1, chosen)
        renormalised = self.choices.routing_weights == "renormalised"
        return self.renormalise(weights) if renormalised else weights

    @abstractmethod
    def renormalise(self, weights: Tensor) -> Tensor:
        """Return the weights (R, K) divided by their sum."""

    def scale_weights(self, weights: Tensor) -> Tensor:
        """Return the weights times the declared factor."""
        scale = self.choices.routing_scale
        return weights if scale == "none" else weights * float(scale)

    def mix_experts(self, module: Node, rows: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        """Return the weighted sums (R, D) of what the chosen experts return."""
        return self.sum_experts(self.ask_experts(module, rows, chosen), weights)

    @abstractmethod
    def ask_experts(self, module: Node, rows: Tensor, chosen: Tensor) -> Tensor:
        """Return the outputs (R, K, D) of the experts with the numbers `chosen` (R, K)."""

    @abstractmethod
    def sum_experts(self, outputs: Tensor, weights: Tensor) -> Tensor:
        """Return the sums (R, D) of outputs (R, K, D) times weights (R, K)."""

    def add_shared(self, module: Node, rows: Tensor, mixed: Tensor) -> Tensor:
        """Return the sums (R, D) with the shared expert's output added, where there is one."""
        if self.choices.shared_expert == "none":
            return mixed
        return mixed + self.gate_shared(module, rows, self.ask_shared(module, rows))

    def ask_shared(self, module: Node, rows: Tensor) -> Tensor:
        """Return the output (R, D) of the shared expert."""
        return self.feed_forward(module.shared_expert, rows)

    def gate_shared(self, module: Node, rows: Tensor, output: Tensor) -> Tensor:
        """Return the shared expert's output times its gate, where it has one."""
        if self.choices.shared_expert != "gated":
            return output
        return torch.sigmoid(self.linear(module.shared_gate, rows)) * output
