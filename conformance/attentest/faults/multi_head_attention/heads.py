"""Faults in how heads are made, split and merged."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "multi_head_attention.heads-averaged",
    clause="multi_head_attention.formula",
    wrong="All heads are given the mean of what they found before they are laid side by side.",
    effect="Several heads do the work of one.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    return self.sound.merge_heads(x.mean(dim=1, keepdim=True).expand_as(x).contiguous())


@fault(
    "multi_head_attention.heads-as-wide-as-model",
    clause="multi_head_attention.head-width",
    origin="C: every head is as wide as the model",
    wrong="Every head is as wide as the model where they should share it.",
    effect="As many times the parameters as there are heads; no checkpoint fits.",
)
def head_width(self: Seams) -> int:
    return self.sizes.d_model


@fault(
    "multi_head_attention.wide-heads-shared",
    clause="multi_head_attention.head-width",
    wrong="The heads share the model width where each is declared to have all of it.",
    effect="Fewer parameters than declared; no checkpoint fits.",
    choices={"head_width": "d"},
)
def head_width(self: Seams) -> int:
    return max(1, self.sizes.d_model // self.sizes.heads)


@fault(
    "multi_head_attention.wide-heads-scaled-as-shared",
    clause="multi_head_attention.head-width",
    wrong="Heads as wide as the model are scaled as if they shared it.",
    effect="The shapes fit, and attention is too steep by the root of the number of heads.",
    choices={"head_width": "d"},
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected * self.sizes.heads**0.5 if name == "query" else projected


@fault(
    "multi_head_attention.split-without-transpose",
    clause="multi_head_attention.heads-are-slices",
    origin="B029; C: heads are made by a view, without a transpose",
    wrong="Heads are made by one view (B, H, L, E), without a transpose.",
    effect="A head is a slice of the sentence, not of the features.",
)
def split_heads(self: Seams, x: Tensor) -> Tensor:
    batch, length, columns = x.shape
    heads = self.sizes.heads
    return x.reshape(batch, heads, length, columns // heads)


@fault(
    "multi_head_attention.heads-interleaved",
    clause="multi_head_attention.heads-are-slices",
    wrong="Columns are dealt out to the heads in turn, not in slices.",
    effect="It trains as well as ever; a checkpoint from elsewhere gives another model.",
)
def split_heads(self: Seams, x: Tensor) -> Tensor:
    batch, length, columns = x.shape
    heads = self.sizes.heads
    return x.reshape(batch, length, columns // heads, heads).permute(0, 3, 1, 2)


@fault(
    "multi_head_attention.heads-merged-backwards",
    clause="multi_head_attention.heads-are-slices",
    wrong="The heads are laid side by side from the last to the first.",
    effect="It trains as well as ever; a checkpoint from elsewhere gives another model.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    return self.sound.merge_heads(x.flip(1))


@fault(
    "multi_head_attention.columns-merged-interleaved",
    clause="multi_head_attention.heads-are-slices",
    wrong="Heads are split as slices and merged column by column.",
    effect="The output projection reads columns in another order than it was saved in.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).flatten(2)


@fault(
    "multi_head_attention.merged-without-transpose",
    clause="multi_head_attention.query-order",
    origin="B028",
    wrong="Heads are merged by a reshape, without being transposed back.",
    effect="The vector of one position is made of pieces of others; copy tasks still train.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    batch, heads, length, width = x.shape
    return x.reshape(batch, length, heads * width)


@fault(
    "multi_head_attention.heads-merged-with-batch",
    clause="multi_head_attention.batch-independence",
    wrong="Heads and samples, merged sample by sample, are taken apart head by head.",
    effect="Sentences get heads of each other; one sample or one head hides it.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    batch, heads, length, width = x.shape
    apart = x.reshape(heads, batch, length, width).transpose(0, 1)
    return self.sound.merge_heads(apart.contiguous())


@fault(
    "multi_head_attention.width-rounded-down",
    clause="multi_head_attention.indivisible-width-refused",
    wrong="A width that the heads do not divide is rounded down.",
    effect="Columns are missing inside, and everything runs.",
)
def check_heads(self: Seams) -> None:
    return None


@fault(
    "multi_head_attention.width-asserted",
    clause="multi_head_attention.indivisible-width-refused",
    origin="A: asserts d % h == 0",
    wrong="An assertion without words guards the width.",
    effect="It says nothing of the two numbers, and nothing at all under python -O.",
)
def check_heads(self: Seams) -> None:
    if self.choices.head_width == "d/h" and self.sizes.d_model % self.sizes.heads:
        raise AssertionError


@fault(
    "multi_head_attention.width-refused-without-numbers",
    clause="multi_head_attention.indivisible-width-refused",
    wrong="The error says that the width is wrong, and neither width nor heads.",
    effect="A user has to find out which of many sizes is meant.",
)
def check_heads(self: Seams) -> None:
    if self.choices.head_width == "d/h" and self.sizes.d_model % self.sizes.heads:
        raise ValueError("The model width must be divisible by the number of heads.")
