"""Faults in large numbers and the precisions that are computed in."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "multi_head_attention.projections-clipped",
    clause="multi_head_attention.large-scores",
    wrong="Projected queries and keys are clipped to 50, so that scores do not overflow.",
    effect="Fresh weights never get there; trained ones do, and lose what tells keys apart.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.clamp(-50.0, 50.0) if name in ("query", "key") else projected


@fault(
    "multi_head_attention.fill-ten-thousand",
    clause="multi_head_attention.large-scores",
    origin="B007",
    wrong="Masked scores are filled with -1e4, chosen to fit into float16.",
    effect="Once trained scores fall below it, a masked key wins the softmax.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    queries, keys, values = (
        self.split_heads(self.project(module, name, x))
        for name, x in (("query", query), ("key", key), ("value", value))
    )
    raw = self.scores(queries, keys, self.scale(queries.shape[-1], queries.shape[1]))
    if mask is not None:
        raw = raw.masked_fill(~mask, -1e4)
    context = self.mix(self.softmax(raw), values)
    return self.project(module, "output", self.merge_heads(context))


@fault(
    "multi_head_attention.float32-through-bfloat16",
    clause="multi_head_attention.float32",
    wrong="The projections of a float32 call run in bfloat16: automatic casting was left on.",
    effect="Two decimal digits are right where seven were asked for.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.bfloat16().float() if x.dtype == torch.float32 else projected


@fault(
    "multi_head_attention.float32-through-half",
    clause="multi_head_attention.float32",
    wrong="The heads of a float32 call are merged in float16.",
    effect="Three decimal digits are right where seven were asked for.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    merged = self.sound.merge_heads(x)
    return merged.half().float() if x.dtype == torch.float32 else merged


@fault(
    "multi_head_attention.float64-through-single",
    clause="multi_head_attention.formula",
    wrong="The projections of a float64 call run in float32.",
    effect="Half of the digits are gone, and no test with a tolerance of 1e-5 sees it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    return self.sound.project(module, name, x).float().to(x.dtype)


@fault(
    "multi_head_attention.half-returned-as-single",
    clause="multi_head_attention.half-precision",
    wrong="Half precision is widened for the sake of its digits and never narrowed again.",
    effect="The next layer raises, or computes in float32 at twice the cost.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    output = self.sound.multi_head_attention(module, query, key, value, mask)
    return output if output.dtype == torch.float64 else output.float()


@fault(
    "multi_head_attention.half-overflows",
    clause="multi_head_attention.half-precision",
    wrong="Projections are summed up unscaled, ten thousand times too large, and divided after.",
    effect="Above 65504 float16 is infinite; no other precision shows it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected * 32768.0 / 32768.0
