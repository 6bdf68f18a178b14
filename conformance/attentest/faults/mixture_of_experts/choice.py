"""Faults in the choice of experts: biases, ranks, ties and numbers."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

ASIDE = {"router_scores": "sigmoid", "router_bias": "in-choice-alone"}


@fault(
    "mixture_of_experts.bias-in-weights",
    "router-bias",
    seam="mixture_of_experts",
    origin="vllm-project/vllm PR#12002",
    choices=ASIDE,
)
def bias_in_weights(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The bias of the choice is in the weights as well. Balancing changes what the experts say."""
    rows = self.flatten_rows(x)
    scores = self.router_scores(self.router_logits(module, self.router_input(rows)))
    ranked = self.ranked_scores(module, scores)
    chosen = self.choose_experts(ranked)
    weights = self.scale_weights(self.routing_weights(ranked, chosen)).to(x.dtype)
    mixed = self.mix_experts(module, rows, chosen, weights)
    return self.restore_rows(self.add_shared(module, rows, mixed), x)


@fault(
    "mixture_of_experts.bias-dropped",
    "router-bias",
    seam="ranked_scores",
    origin="NVIDIA/TensorRT-Model-Connect PR#669",
    choices=ASIDE,
)
def bias_dropped(self: Hooks, module: Node, scores: Tensor) -> Tensor:
    """The bias of the choice is loaded and not used. Other experts work than in training."""
    return scores


@fault(
    "mixture_of_experts.bias-of-logits-dropped",
    "router-bias",
    seam="router_logits",
    origin="pytorch/torchtitan PR#2319",
    choices={"router_bias": "in-scores"},
)
def bias_of_logits_dropped(self: Hooks, module: Node, rows: Tensor) -> Tensor:
    """The bias of the logits is not added. Zero biases hide it."""
    return rows @ self.router_matrix(module).to(rows.dtype).T


@fault(
    "mixture_of_experts.one-expert-more",
    "chosen-alone",
    seam="choose_experts",
    origin="ml-explore/mlx-examples#671",
)
def one_expert_more(self: Hooks, ranked: Tensor) -> Tensor:
    """One expert more than declared works on every position. Text stays fluent."""
    count = min(self.sizes.chosen_experts + 1, self.sizes.experts)
    return self.correct.greatest(ranked, count)


@fault(
    "mixture_of_experts.number-ignored",
    "chosen-alone",
    seam="choose_experts",
    origin="JieShibo/MoLE#7",
)
def number_ignored(self: Hooks, ranked: Tensor) -> Tensor:
    """The number of chosen experts is a constant in the code. Evaluations differ from the paper."""
    return self.correct.greatest(ranked, min(10, self.sizes.experts))


@fault("mixture_of_experts.next-in-rank", "greatest-scores", seam="choose_experts")
def next_in_rank(self: Hooks, ranked: Tensor) -> Tensor:
    """The greatest score is skipped, by a rank that is off by one. The second best works."""
    count = self.sizes.chosen_experts
    return self.correct.greatest(ranked, min(count + 1, self.sizes.experts))[..., -count:]


@fault("mixture_of_experts.smallest-scores", "greatest-scores", seam="choose_experts")
def smallest_scores(self: Hooks, ranked: Tensor) -> Tensor:
    """The experts with the smallest scores are chosen. Those that fit worst work."""
    return self.correct.greatest(-ranked, self.sizes.chosen_experts)


@fault("mixture_of_experts.choice-of-the-first-position", "greatest-scores", seam="choose_experts")
def choice_of_the_first_position(self: Hooks, ranked: Tensor) -> Tensor:
    """All positions take the experts of the first one. A single token hides it."""
    return self.correct.choose_experts(ranked[:1]).expand(len(ranked), -1)


@fault("mixture_of_experts.last-expert-never-chosen", "all-chosen", seam="choose_experts")
def last_expert_never_chosen(self: Hooks, ranked: Tensor) -> Tensor:
    """With as many chosen as there are, the one with the smallest score is left out.

    The dense mixture lacks one expert at every position.
    """
    return self.correct.greatest(
        ranked, max(1, min(self.sizes.chosen_experts, self.sizes.experts - 1))
    )


@fault("mixture_of_experts.all-ties-chosen", "ties", seam="mixture_of_experts")
def all_ties_chosen(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Every expert whose score equals the k-th one works. A router of zeros uses them all."""
    rows = self.flatten_rows(x)
    scores = self.router_scores(self.router_logits(module, self.router_input(rows)))
    ranked = self.ranked_scores(module, scores)
    least = ranked.gather(-1, self.choose_experts(ranked)[..., -1:])
    every = torch.arange(scores.shape[-1], device=x.device).expand(scores.shape)
    kept = scores * (ranked >= least)
    if self.choices.routing_weights == "renormalised":
        kept = self.renormalise(kept)
    mixed = self.mix_experts(module, rows, every, self.scale_weights(kept).to(x.dtype))
    return self.restore_rows(self.add_shared(module, rows, mixed), x)


@fault("mixture_of_experts.rank-for-number", "order-of-experts", seam="ask_experts")
def rank_for_number(self: Hooks, module: Node, rows: Tensor, chosen: Tensor) -> Tensor:
    """An expert is found by the rank of its score, not by its number. The first k always work."""
    ranks = torch.arange(chosen.shape[-1], device=rows.device).expand(chosen.shape)
    return self.correct.ask_experts(module, rows, ranks)


@fault("mixture_of_experts.numbers-off-by-one", "order-of-experts", seam="ask_experts")
def numbers_off_by_one(self: Hooks, module: Node, rows: Tensor, chosen: Tensor) -> Tensor:
    """The numbers of the experts are off by one. Positions get the neighbour of their choice."""
    return self.correct.ask_experts(module, rows, (chosen + 1) % self.sizes.experts)
