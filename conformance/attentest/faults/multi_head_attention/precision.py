"""Faults with large numbers, and in the precision of a step."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("multi_head_attention.projections-clipped", "large-scores", seam="project")
def projections_clipped(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Projected queries and keys are clipped to 50.

    Trained weights exceed it and lose information.
    """
    projected = self.correct.project(module, name, x)
    return projected.clamp(-50.0, 50.0) if name in ("query", "key") else projected


@fault(
    "multi_head_attention.fill-ten-thousand",
    "large-scores",
    seam="multi_head_attention",
    origin="B007",
)
def fill_ten_thousand(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Masked scores are filled with -1e4, chosen to fit into float16.

    Once trained scores fall below it, a masked key wins the softmax.
    """
    queries, keys, values = (
        self.split_heads(self.project(module, name, x))
        for name, x in (("query", query), ("key", key), ("value", value))
    )
    raw = self.scores(queries, keys, self.scale(queries.shape[-1], queries.shape[1]))
    if mask is not None:
        raw = raw.masked_fill(~mask, -1e4)
    context = self.mix(self.softmax(raw), values)
    return self.project(module, "output", self.merge_heads(context))


@fault("multi_head_attention.float32-through-bfloat16", "float32", seam="project")
def float32_through_bfloat16(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The projections of a float32 call run in bfloat16: automatic casting was left on.

    Two decimal digits are right where seven were asked for.
    """
    projected = self.correct.project(module, name, x)
    return projected.bfloat16().float() if x.dtype == torch.float32 else projected


@fault("multi_head_attention.float32-through-half", "float32", seam="merge_heads")
def float32_through_half(self: Hooks, x: Tensor) -> Tensor:
    """The heads of a float32 call are merged in float16. Three digits are right, not seven."""
    merged = self.correct.merge_heads(x)
    return merged.half().float() if x.dtype == torch.float32 else merged


@fault("multi_head_attention.float64-through-single", "formula", seam="project")
def float64_through_single(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The projections of a float64 call run in float32.

    Half of the digits are gone, and no test with a tolerance of 1e-5 sees it.
    """
    return self.correct.project(module, name, x).float().to(x.dtype)


@fault(
    "multi_head_attention.half-returned-as-single", "half-precision", seam="multi_head_attention"
)
def half_returned_as_single(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Half precision is widened for the sake of its digits and never narrowed again.

    The next layer raises, or computes in float32 at twice the cost.
    """
    output = self.correct.multi_head_attention(module, query, key, value, mask)
    return output if output.dtype == torch.float64 else output.float()


@fault("multi_head_attention.half-overflows", "half-precision", seam="project")
def half_overflows(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Projections are summed up unscaled, ten thousand times too large, and divided after.

    Above 65504 float16 is infinite; no other precision shows it.
    """
    projected = self.correct.project(module, name, x)
    return projected * 32768.0 / 32768.0
