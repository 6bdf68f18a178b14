"""Faults in the scale of scores, and in their cap."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Answer, Hooks, Mask, Node

SCALED = {"score_scale": 0.4}
CAPPED = {"score_cap": 1.5}


@fault("attention.scale-by-width-alone", "score-scale", seam="scale", origin="M107", choices=SCALED)
def scale_by_width_alone(self: Hooks, width: int, heads: int) -> float:
    """The scale of the configuration is not read. It is wrong at long distances first."""
    return float(width**-0.5)


@fault(
    "attention.declared-scale-divides", "score-scale", seam="scale", origin="M167", choices=SCALED
)
def declared_scale_divides(self: Hooks, width: int, heads: int) -> float:
    """Scores are divided by the scale and not multiplied. Training is unstable."""
    return 1.0 / self.correct.scale(width, heads)


@fault("attention.declared-scale-twice", "score-scale", seam="scale", origin="M107", choices=SCALED)
def declared_scale_twice(self: Hooks, width: int, heads: int) -> float:
    """Queries are scaled, and scores once more. Attention is too flat."""
    return self.correct.scale(width, heads) ** 2


@fault(
    "attention.declared-scale-with-width",
    "score-scale",
    seam="scale",
    origin="M107",
    choices=SCALED,
)
def declared_scale_with_width(self: Hooks, width: int, heads: int) -> float:
    """The declared scale is one more factor beside that of the width. Attention is too flat."""
    return self.correct.scale(width, heads) * float(width**-0.5)


@fault("attention.scale-of-the-second-layer", "score-scale", seam="scale", origin="M109")
def scale_of_the_second_layer(self: Hooks, width: int, heads: int) -> float:
    """Scores are divided by one more factor, that of a model with another scale in each layer.

    The first layer alone is right.
    """
    return self.correct.scale(width, heads) / 2.0


@fault("attention.cap-missing", "score-cap", seam="bound_scores", origin="M119", choices=CAPPED)
def cap_missing(self: Hooks, raw: Tensor) -> Tensor:
    """Scores are not bounded. Small ones hide it, and trained models have large ones."""
    return raw


@fault("attention.cap-undeclared", "score-cap", seam="bound_scores", origin="M119")
def cap_undeclared(self: Hooks, raw: Tensor) -> Tensor:
    """Scores are bounded, and that is not declared. Attention cannot be as steep as it should."""
    return self.correct.cap_scores(raw, 1.0)


@fault("attention.cap-of-itself", "score-cap", seam="cap_scores", origin="M118", choices=CAPPED)
def cap_of_itself(self: Hooks, raw: Tensor, cap: float) -> Tensor:
    """Scores are multiplied by tanh(score / cap). Negative scores become positive."""
    return raw * torch.tanh(raw / cap)


@fault(
    "attention.cap-without-factor", "score-cap", seam="cap_scores", origin="M118", choices=CAPPED
)
def cap_without_factor(self: Hooks, raw: Tensor, cap: float) -> Tensor:
    """The tanh is not multiplied by the cap. All scores lie between -1 and 1."""
    return torch.tanh(raw / cap)


@fault("attention.cap-hard", "score-cap", seam="cap_scores", origin="M118", choices=CAPPED)
def cap_hard(self: Hooks, raw: Tensor, cap: float) -> Tensor:
    """Scores are cut off at the cap. They have no gradient beyond it."""
    return raw.clamp(-cap, cap)


@fault("attention.cap-before-scale", "score-cap", seam="scores", choices=CAPPED)
def cap_before_scale(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """Products are bounded before they are scaled. Attention is flatter the wider the heads are."""
    cap = float(self.choices.score_cap) if self.choices.score_cap != "none" else 1.0
    return self.correct.cap_scores(self.correct.scores(query, key, 1.0), cap) * factor


@fault(
    "attention.cap-after-mask",
    "score-cap",
    seam="attention",
    origin="onnx/onnx PR#7867",
    choices=CAPPED,
)
def cap_after_mask(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    """Scores are bounded after the mask. Hidden keys get the score -cap, and some weight."""
    factor = self.scale(query.shape[-1], query.shape[1])
    raw = self.mask_scores(self.scores(query, key, factor), mask)
    weights = self.softmax(self.bound_scores(raw.clamp(min=-1e9)))
    return self.mix(self.drop_weights(module, weights), value), weights
