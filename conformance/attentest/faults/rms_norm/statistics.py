"""Faults in the mean of squares and in the division."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("rms_norm.mean-subtracted", "mean-kept", seam="widen_row", origin="ggml-org/llama.cpp#173")
def mean_subtracted(self: Hooks, x: Tensor) -> Tensor:
    """The mean is subtracted: a layer norm without a bias. Inputs around zero hide most of it."""
    wide = self.correct.widen_row(x)
    return wide - wide.mean(dim=-1, keepdim=True)


@fault(
    "rms_norm.deviation-for-rms",
    "mean-kept",
    seam="mean_square",
    origin="keras-team/keras PR#22393",
)
def deviation_for_rms(self: Hooks, x: Tensor) -> Tensor:
    """Rows are divided by their standard deviation. Rows far from zero come out large."""
    return self.correct.mean_square(x - x.mean(dim=-1, keepdim=True))


@fault(
    "rms_norm.sample-deviation-for-rms",
    "formula",
    seam="mean_square",
    origin="huggingface/pytorch-image-models#2380",
)
def sample_deviation_for_rms(self: Hooks, x: Tensor) -> Tensor:
    """Rows are divided by std() of the library, which subtracts a mean and divides by n - 1.

    Rows around zero come out a little too small.
    """
    return x.var(dim=-1, keepdim=True, unbiased=x.shape[-1] > 1)


@fault("rms_norm.sum-for-mean", "formula", seam="mean_square")
def sum_for_mean(self: Hooks, x: Tensor) -> Tensor:
    """Squares are summed and not averaged. Rows come out short by the root of the width."""
    return x.square().sum(dim=-1, keepdim=True)


@fault("rms_norm.width-less-one", "formula", seam="mean_square")
def width_less_one(self: Hooks, x: Tensor) -> Tensor:
    """The sum of squares is divided by n - 1. 13 % off at width 4, invisible at 512."""
    return x.square().sum(dim=-1, keepdim=True) / max(1, x.shape[-1] - 1)


@fault("rms_norm.root-missing", "scale-law", seam="rms_divisor")
def root_missing(self: Hooks, square: Tensor, width: int) -> Tensor:
    """Rows are divided by their mean square, not by its root. Unit scale hides it."""
    return square + self.rms_epsilon()


@fault("rms_norm.mean-absolute", "formula", seam="mean_square")
def mean_absolute(self: Hooks, x: Tensor) -> Tensor:
    """Rows are divided by the mean of their sizes. They come out a quarter too large or so."""
    return x.abs().mean(dim=-1, keepdim=True).square()


@fault("rms_norm.largest-for-rms", "formula", seam="mean_square")
def largest_for_rms(self: Hooks, x: Tensor) -> Tensor:
    """Rows are divided by their largest number. No number exceeds the weight."""
    return x.abs().amax(dim=-1, keepdim=True).square()


@fault("rms_norm.not-divided", "scale-law", seam="divide_row")
def not_divided(self: Hooks, x: Tensor, divisor: Tensor) -> Tensor:
    """Rows are not divided. The size of the input comes through, and deep stacks blow up."""
    return x


@fault("rms_norm.sign-lost", "scale-law", seam="divide_row")
def sign_lost(self: Hooks, x: Tensor, divisor: Tensor) -> Tensor:
    """Numbers lose their sign. Positive and negative features look the same."""
    return self.correct.divide_row(x, divisor).abs()


@fault("rms_norm.first-call-remembered", "scale-law", seam="mean_square")
def first_call_remembered(self: Hooks, x: Tensor) -> Tensor:
    """The mean square of the first call of a shape is used for the next ones.

    The first call is right; later ones carry its scale.
    """
    kept = self.memory.setdefault(f"rms {tuple(x.shape)}", self.correct.mean_square(x))
    remembered: Tensor = kept.detach().to(x)
    return remembered


@fault("rms_norm.over-time-and-features", "per-position", seam="mean_square")
def over_time_and_features(self: Hooks, x: Tensor) -> Tensor:
    """The mean runs over positions and columns. Tokens depend on padding and the future."""
    return x.square().mean(dim=(-2, -1), keepdim=True).expand(*x.shape[:-1], 1)


@fault("rms_norm.over-time", "per-position", seam="mean_square", origin="kyegomez/zeta#180")
def over_time(self: Hooks, x: Tensor) -> Tensor:
    """The mean runs over the positions, once for each column. Tokens depend on each other."""
    return x.square().mean(dim=-2, keepdim=True).expand_as(x)


@fault("rms_norm.over-batch", "per-position", seam="mean_square")
def over_batch(self: Hooks, x: Tensor) -> Tensor:
    """The mean square is averaged over the batch. Samples affect each other."""
    single = self.correct.mean_square(x)
    return single.mean(dim=0, keepdim=True).expand_as(single)


@fault("rms_norm.mean-of-256-columns", "formula", seam="mean_square")
def mean_of_256_columns(self: Hooks, x: Tensor) -> Tensor:
    """The mean is that of the first 256 columns. Only wide models show it."""
    return self.correct.mean_square(x[..., :256])


@fault("rms_norm.squeezed", "shapes", seam="rms_norm", origin="B036")
def squeezed(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Axes of length one are squeezed. A batch of one sample changes its shape."""
    return self.correct.rms_norm(module, x).squeeze()


@fault(
    "rms_norm.divided-in-place",
    "input-untouched",
    seam="divide_row",
    origin="GeeeekExplorer/nano-vllm#170",
)
def divided_in_place(self: Hooks, x: Tensor, divisor: Tensor) -> Tensor:
    """The caller's own array is divided. The residual path adds a normalised input."""
    with torch.no_grad():
        return x.data.div_(divisor)


@fault("rms_norm.divisor-constant-in-backward", "gradient", seam="rms_divisor", kind="gradient")
def divisor_constant_in_backward(self: Hooks, square: Tensor, width: int) -> Tensor:
    """The divisor is detached from the graph. Values are right; the gradient is incomplete."""
    return self.correct.rms_divisor(square, width).detach()


@fault(
    "rms_norm.reciprocal-divides",
    "formula",
    seam="divide_row",
    origin="mosaicml/llm-foundry#371",
)
def reciprocal_divides(self: Hooks, x: Tensor, divisor: Tensor) -> Tensor:
    """Rows are divided by the reciprocal root. Large rows grow, and the loss diverges."""
    return x / divisor.reciprocal()


@fault("rms_norm.unit-rows-shrunk", "formula", seam="divide_row", origin="kyegomez/zeta#180")
def unit_rows_shrunk(self: Hooks, x: Tensor, divisor: Tensor) -> Tensor:
    """Rows of unit length are divided by the root of the width, in place of a product.

    They come out short by the width.
    """
    return self.correct.divide_row(x, divisor) / x.shape[-1]


@fault(
    "rms_norm.input-detached",
    "gradient",
    seam="widen_row",
    origin="huggingface/candle#2168",
    kind="gradient",
)
def input_detached(self: Hooks, x: Tensor) -> Tensor:
    """The row is detached from the graph. Nothing before the norm is trained."""
    return self.correct.widen_row(x).detach()


@fault(
    "rms_norm.weight-twice-in-backward",
    "gradient",
    seam="rms_norm",
    origin="NVIDIA/Megatron-LM PR#6859",
    kind="gradient",
)
def weight_twice_in_backward(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """In the backward pass the divisor's part is multiplied by the weight once more.

    Values are right, and so is the gradient as long as the weight is 1.
    """
    weight = self.row_weight(module)
    fixed = x.detach()
    same = x if weight is None else fixed + (x - fixed) * weight.detach()
    square = self.mean_square(self.widen_row(same))
    rows = self.divide_row(self.widen_row(x), self.rms_divisor(square, x.shape[-1]))
    return self.weigh_row(module, rows, x.dtype)
