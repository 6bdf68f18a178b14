"""Faults in the weights of the chosen experts: scores, sums and factors."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

SCORED = {"routing_weights": "as-scored"}
SIGMOID = {"router_scores": "sigmoid"}


@fault(
    "mixture_of_experts.softmax-of-the-chosen",
    "weights",
    seam="routing_weights",
    origin="M157",
    choices=SCORED,
)
def softmax_of_the_chosen(self: Hooks, scores: Tensor, chosen: Tensor) -> Tensor:
    """The softmax is over the chosen logits alone, where it is to be over all experts.

    Every layer is too large; text begins well and drifts.
    """
    weights = self.correct.routing_weights(scores, chosen)
    return weights / weights.sum(dim=-1, keepdim=True)


@fault(
    "mixture_of_experts.logits-for-weights",
    "weights",
    seam="router_scores",
    origin="M158",
    choices=SCORED,
)
def logits_for_weights(self: Hooks, logits: Tensor) -> Tensor:
    """The weights are the logits of the router. Layers are scaled by numbers of both signs."""
    return logits


@fault(
    "mixture_of_experts.not-renormalised",
    "weights",
    seam="renormalise",
    origin="pytorch/torchtitan#1448",
)
def not_renormalised(self: Hooks, weights: Tensor) -> Tensor:
    """The weights are not divided by their sum. Every layer is too small."""
    return weights


@fault("mixture_of_experts.length-for-sum", "weights", seam="renormalise")
def length_for_sum(self: Hooks, weights: Tensor) -> Tensor:
    """The weights are divided by their length, and not by their sum. They sum to more than 1."""
    length: Tensor = torch.linalg.vector_norm(weights, dim=-1, keepdim=True)
    return weights / length


@fault(
    "mixture_of_experts.softmax-of-scores",
    "weights",
    seam="renormalise",
    origin="huggingface/transformers#45120",
)
def softmax_of_scores(self: Hooks, weights: Tensor) -> Tensor:
    """A second softmax is taken over what are probabilities. The weights are nearly equal."""
    return torch.softmax(weights, dim=-1)


@fault(
    "mixture_of_experts.one-weight-over-positions",
    "one-chosen",
    seam="renormalise",
    origin="databricks/megablocks PR#87",
)
def one_weight_over_positions(self: Hooks, weights: Tensor) -> Tensor:
    """The only weight of a position is divided by the sum over all positions.

    With one expert per position the axis is squeezed; outputs shrink with the length of the batch.
    """
    if weights.shape[-1] == 1:
        return weights / weights.sum(dim=0, keepdim=True)
    return self.correct.renormalise(weights)


@fault(
    "mixture_of_experts.softmax-for-sigmoid",
    "scores",
    seam="router_scores",
    origin="MetaX-MACA/vLLM-metax#270",
    choices=SIGMOID,
)
def softmax_for_sigmoid(self: Hooks, logits: Tensor) -> Tensor:
    """The scores are a softmax where sigmoids are declared. The same experts are chosen."""
    return torch.softmax(logits, dim=-1)


@fault(
    "mixture_of_experts.sigmoid-for-softmax",
    "scores",
    seam="router_scores",
    origin="1bit-MONSTER/1bit-MONSTER#650",
)
def sigmoid_for_softmax(self: Hooks, logits: Tensor) -> Tensor:
    """The scores are sigmoids where a softmax is declared. The same experts are chosen."""
    return torch.sigmoid(logits)


@fault(
    "mixture_of_experts.softmax-over-positions",
    "position-wise",
    seam="router_scores",
    origin="deepspeedai/DeepSpeed PR#2110",
)
def softmax_over_positions(self: Hooks, logits: Tensor) -> Tensor:
    """The softmax is over the positions. Other sentences and padding change every weight."""
    return torch.softmax(logits, dim=0)


@fault(
    "mixture_of_experts.exponential-overflows",
    "large-scores",
    seam="router_scores",
    origin="pyg-team/pytorch_geometric#53",
)
def exponential_overflows(self: Hooks, logits: Tensor) -> Tensor:
    """The largest logit is not subtracted before the exponential. Large logits give NaN."""
    powers = torch.exp(logits)
    return powers / powers.sum(dim=-1, keepdim=True)


@fault(
    "mixture_of_experts.scale-with-the-sum-alone",
    "scale",
    seam="scale_weights",
    origin="M160",
    choices={**SCORED, "routing_scale": 2.5},
)
def scale_with_the_sum_alone(self: Hooks, weights: Tensor) -> Tensor:
    """The factor is applied only where weights are renormalised. The experts count too little."""
    renormalised = self.choices.routing_weights == "renormalised"
    return self.correct.scale_weights(weights) if renormalised else weights


@fault(
    "mixture_of_experts.scale-before-the-sum",
    "scale",
    seam="routing_weights",
    origin="sgl-project/sglang PR#31449",
    choices={"routing_scale": 2.5},
)
def scale_before_the_sum(self: Hooks, scores: Tensor, chosen: Tensor) -> Tensor:
    """The factor multiplies the scores before they are divided by their sum, and cancels.

    The experts count too little beside the shared one.
    """
    factor = 1.0 if self.choices.routing_scale == "none" else float(self.choices.routing_scale)
    return self.correct.routing_weights(scores, chosen) / factor


@fault(
    "mixture_of_experts.scale-of-the-shared-expert",
    "formula",
    seam="add_shared",
    choices={"routing_scale": 2.5, "shared_expert": "added"},
)
def scale_of_the_shared_expert(self: Hooks, module: Node, rows: Tensor, mixed: Tensor) -> Tensor:
    """The factor multiplies the shared expert as well. A checkpoint loads and is off everywhere."""
    factor = 1.0 if self.choices.routing_scale == "none" else float(self.choices.routing_scale)
    return mixed + factor * (self.correct.add_shared(module, rows, mixed) - mixed)


@fault(
    "mixture_of_experts.scores-in-bfloat16",
    "float32",
    seam="router_scores",
    origin="NVIDIA-NeMo/Automodel PR#2201",
)
def scores_in_bfloat16(self: Hooks, logits: Tensor) -> Tensor:
    """The scores are rounded to bfloat16. Near a tie another expert is chosen."""
    return self.correct.router_scores(logits).bfloat16().to(logits.dtype)


@fault("mixture_of_experts.scores-in-float32", "arithmetic", seam="router_scores", origin="M161")
def scores_in_float32(self: Hooks, logits: Tensor) -> Tensor:
    """The scores are computed in float32 whatever the model. A float64 model keeps 7 digits."""
    return self.correct.router_scores(logits.float()).to(logits.dtype)
