"""Faults in the projections of query, key, value and output."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


def bias_of(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Return the bias of the projection `name`: what it makes of zeros."""
    return self.correct.project(module, name, torch.zeros_like(x))


@fault("multi_head_attention.output-projection-missing", "formula", seam="project", origin="B033")
def output_projection_missing(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The heads are laid side by side and returned; the output projection is left out.

    Heads are never mixed, and the columns of one head see no other.
    """
    return x if name == "output" else self.correct.project(module, name, x)


@fault(
    "multi_head_attention.output-projection-twice",
    "formula",
    seam="project",
    origin="C: the output projection is applied twice",
)
def output_projection_twice(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The output projection is applied to its own result once more.

    It trains, and no other implementation reads its weights.
    """
    once = self.correct.project(module, name, x)
    return self.correct.project(module, name, once) if name == "output" else once


@fault("multi_head_attention.scaled-by-model-width", "formula", seam="project", origin="B024")
def scaled_by_model_width(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """A head divides its scores by the root of the model width, not of the head width.

    Attention is too flat by the root of the number of heads; one head hides it.
    """
    projected = self.correct.project(module, name, x)
    return projected * self.sizes.heads**-0.5 if name == "query" else projected


@fault("multi_head_attention.scaled-before-and-after", "formula", seam="project")
def scaled_before_and_after(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The query is scaled when it is projected, and the scores are scaled again.

    Attention is too flat by the root of the head width.
    """
    projected = self.correct.project(module, name, x)
    return projected * self.head_width() ** -0.5 if name == "query" else projected


@fault("multi_head_attention.rectified-value", "formula", seam="project")
def rectified_value(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Values go through a ReLU after their projection. Non-negative values hide it."""
    projected = self.correct.project(module, name, x)
    return projected.clamp(min=0.0) if name == "value" else projected


@fault("multi_head_attention.query-bias-dropped", "projection-bias", seam="project")
def query_bias_dropped(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The bias of the query projection is not added. It is never trained; zeros hide it."""
    projected = self.correct.project(module, name, x)
    return projected - bias_of(self, module, name, x) if name == "query" else projected


@fault("multi_head_attention.value-bias-dropped", "projection-bias", seam="project")
def value_bias_dropped(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The bias of the value projection is not added. It is never trained; zeros hide it."""
    projected = self.correct.project(module, name, x)
    return projected - bias_of(self, module, name, x) if name == "value" else projected


@fault("multi_head_attention.output-bias-per-head", "projection-bias", seam="project")
def output_bias_per_head(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The output is projected head by head and summed, its bias with each of them.

    The bias counts as many times as there are heads.
    """
    projected = self.correct.project(module, name, x)
    if name != "output":
        return projected
    return projected + (self.sizes.heads - 1) * bias_of(self, module, name, x)


@fault("multi_head_attention.single-head-unprojected", "one-head-is-attention", seam="project")
def single_head_unprojected(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """With one head the output projection is skipped. Two heads or more are right."""
    superfluous = name == "output" and self.sizes.heads == 1
    return x if superfluous else self.correct.project(module, name, x)


@fault("multi_head_attention.single-head-values-raw", "one-head-is-attention", seam="project")
def single_head_values_raw(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """With one head the values are not projected. Two heads or more are right."""
    raw = name == "value" and self.sizes.heads == 1 and self.head_width() == x.shape[-1]
    return x if raw else self.correct.project(module, name, x)


@fault("multi_head_attention.query-by-key-weight", "own-projections", seam="project", origin="B032")
def query_by_key_weight(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The query is projected by the weight of the keys: a line copied and not changed.

    The query projection is never trained, and scores are symmetric.
    """
    return self.correct.project(module, "key" if name == "query" else name, x)


@fault("multi_head_attention.value-by-key-weight", "own-projections", seam="project", origin="B032")
def value_by_key_weight(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The value is projected by the weight of the keys. The value projection is never trained."""
    return self.correct.project(module, "key" if name == "value" else name, x)


@fault("multi_head_attention.query-and-key-swapped", "own-projections", seam="project")
def query_and_key_swapped(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Query and key are projected by each other's weight.

    It trains as well as ever; a checkpoint from elsewhere gives another model.
    """
    other = {"query": "key", "key": "query"}
    return self.correct.project(module, other.get(name, name), x)
