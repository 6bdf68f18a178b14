"""Faults in gradients, precisions and side effects."""

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("positional_encoding.everything-in-half", "half-precision", seam="add_rows", origin="B048")
def everything_in_half(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """Positions and frequencies use the input's precision. In half, late positions coincide."""
    places = self.correct.positions(len(rows), x.device).to(x.dtype)
    turns = self.correct.frequencies(self.sizes.d_model, x.device).to(x.dtype)
    angles = self.correct.angles(places, turns)
    return x + self.correct.arrange(angles.sin(), angles.cos(), self.sizes.d_model)


@fault("positional_encoding.positions-in-half", "half-precision", seam="add_rows", origin="B048")
def positions_in_half(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """Positions use the precision of the input. In half precision late positions coincide."""
    places = self.correct.positions(len(rows), x.device).to(x.dtype).double()
    angles = self.correct.angles(places, self.correct.frequencies(self.sizes.d_model, x.device))
    return self.correct.add_rows(
        x, self.correct.arrange(angles.sin(), angles.cos(), self.sizes.d_model)
    )


@fault(
    "positional_encoding.input-detached", "gradient-is-identity", seam="add_rows", kind="gradient"
)
def input_detached(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The input is detached before the sum. The embeddings are never trained."""
    return self.correct.add_rows(x.detach(), rows)


@fault(
    "positional_encoding.first-position-detached",
    "gradient-is-identity",
    seam="add_rows",
    kind="gradient",
)
def first_position_detached(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The first position is detached. The start token is never trained."""
    return self.correct.add_rows(torch.cat((x[:, :1].detach(), x[:, 1:]), dim=1), rows)


@fault(
    "positional_encoding.gradient-doubled", "gradient-is-identity", seam="add_rows", kind="gradient"
)
def gradient_doubled(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The input reaches the sum twice, once without a value. Embeddings train at twice the rate."""
    return self.correct.add_rows(x, rows) + (x - x.detach())


@fault("positional_encoding.added-in-place", "input-untouched", seam="add_rows", kind="state")
def added_in_place(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The rows are added to the caller's own input. A second call adds them twice."""
    return x.add_(rows.to(x.dtype))


@fault(
    "positional_encoding.counted-on-from-last-call",
    "input-untouched",
    seam="add_rows",
    origin="B119",
    kind="state",
)
def counted_on_from_last_call(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The position offset of the last call is kept. A second sequence starts late."""
    offset = self.memory["offset"] = self.memory.get("offset", -1) + 1
    return self.correct.add_rows(x, rows.roll(-offset, dims=0))


@fault(
    "positional_encoding.dropout-in-evaluation",
    "input-untouched",
    seam="drop_embedded",
    kind="mode",
)
def dropout_in_evaluation(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """A functional dropout ignores the mode. Evaluation is random."""
    return functional.dropout(x, 0.5)


@fault(
    "positional_encoding.dropout-before-positions",
    "dropout-on-sum",
    seam="positional_encoding",
    kind="mode",
)
def dropout_before_positions(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Dropout acts on the embedding, and positions are added to what it leaves.

    Positions are never dropped. A model learns to rely on them.
    """
    return self.correct.add_positions(module, self.correct.drop_embedded(module, x))


@fault(
    "positional_encoding.one-buffer-for-results", "input-untouched", seam="add_rows", kind="state"
)
def one_buffer_for_results(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """Results share a buffer per shape. A later call overwrites an earlier result."""
    result = self.correct.add_rows(x, rows)
    if torch.is_grad_enabled():
        return result
    place = str((x.shape, x.dtype, x.device))
    kept: Tensor = self.memory.setdefault(place, torch.empty_like(x))
    return kept.copy_(result)
