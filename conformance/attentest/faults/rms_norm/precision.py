"""Faults in the precision of a step, and in the order of roundings."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

BEFORE = {"rms_cast": "before-weight"}
AFTER = {"rms_cast": "after-weight"}


@fault(
    "rms_norm.weighted-before-the-cast",
    "cast-order",
    seam="weigh_row",
    origin="M095",
    choices=BEFORE,
)
def weighted_before_the_cast(self: Hooks, module: Node, rows: Tensor, dtype: torch.dtype) -> Tensor:
    """The weight multiplies in float32; rounding before it is declared.

    The last digit of half precision differs in every layer, and nothing in float32.
    """
    weight = self.row_weight(module)
    return (rows if weight is None else rows * weight.to(rows)).to(dtype)


@fault(
    "rms_norm.cast-before-the-weight", "cast-order", seam="weigh_row", origin="M095", choices=AFTER
)
def cast_before_the_weight(self: Hooks, module: Node, rows: Tensor, dtype: torch.dtype) -> Tensor:
    """The row is rounded before the weight multiplies it; once after it is declared.

    The last digit of half precision differs in every layer, and nothing in float32.
    """
    weight, narrow = self.row_weight(module), rows.to(dtype)
    return narrow if weight is None else narrow * weight.to(dtype)


@fault(
    "rms_norm.offset-in-half-precision",
    "cast-order",
    seam="row_weight",
    origin="M098",
    choices={**AFTER, "rms_weight": "one-plus-weight"},
)
def offset_in_half_precision(self: Hooks, module: Node) -> Tensor | None:
    """1 is added to the weight in half precision, and the sum is rounded.

    Some columns are off by a unit in the last place.
    """
    weight = self.correct.row_weight(module)
    return None if weight is None else weight.to(next(module.parameters()).dtype)


@fault(
    "rms_norm.always-float32",
    "arithmetic",
    seam="widen_row",
    origin="patrick-kidger/equinox PR#723",
)
def always_float32(self: Hooks, x: Tensor) -> Tensor:
    """Rows are cast to float32, whatever came in. A float64 model keeps seven digits."""
    return x.float()


@fault("rms_norm.output-float32", "shapes", seam="rms_norm", origin="vllm-project/vllm PR#35369")
def output_float32(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The output is float32, whatever came in. Later layers mix precisions."""
    return self.correct.rms_norm(module, x).float()


@fault(
    "rms_norm.not-narrowed-back",
    "half-precision",
    seam="rms_norm",
    origin="huggingface/transformers#30236",
)
def not_narrowed_back(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Half precision is widened to float32 and stays so. Later layers mix precisions."""
    correct = self.correct.rms_norm(module, x)
    return correct if x.dtype == torch.float64 else correct.float()


@fault("rms_norm.float32-in-bfloat16", "float32", seam="widen_row")
def float32_in_bfloat16(self: Hooks, x: Tensor) -> Tensor:
    """float32 is narrowed to bfloat16 on the way. Five digits are lost, silently."""
    wide = self.correct.widen_row(x)
    return wide.bfloat16() if x.dtype == torch.float32 else wide


@fault(
    "rms_norm.squares-overflow",
    "half-precision-large",
    seam="widen_row",
    origin="xlite-dev/LeetCUDA PR#335",
)
def squares_overflow(self: Hooks, x: Tensor) -> Tensor:
    """float16 is not widened before it is squared. Rows beyond 256 come out as 0."""
    return x
