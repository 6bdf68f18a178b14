"""Faults in the width, the split and the merge of heads."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("multi_head_attention.heads-averaged", "formula", seam="merge_heads")
def heads_averaged(self: Hooks, x: Tensor) -> Tensor:
    """All heads are replaced by their mean. Several heads do the work of one."""
    return self.correct.merge_heads(x.mean(dim=1, keepdim=True).expand_as(x).contiguous())


@fault(
    "multi_head_attention.heads-as-wide-as-model",
    "head-width",
    seam="head_width",
    origin="C: every head is as wide as the model",
)
def heads_as_wide_as_model(self: Hooks) -> int:
    """Every head is as wide as the model where they should share it.

    As many times the parameters as there are heads; no checkpoint fits.
    """
    return self.sizes.d_model


@fault(
    "multi_head_attention.wide-heads-shared",
    "head-width",
    seam="head_width",
    choices={"head_width": "d"},
)
def wide_heads_shared(self: Hooks) -> int:
    """The heads share the model width where each is declared to have all of it.

    Fewer parameters than declared; no checkpoint fits.
    """
    return max(1, self.sizes.d_model // self.sizes.heads)


@fault(
    "multi_head_attention.wide-heads-scaled-as-shared",
    "head-width",
    seam="project",
    choices={"head_width": "d"},
)
def wide_heads_scaled_as_shared(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Heads as wide as the model are scaled as if they shared it.

    The shapes fit, and attention is too steep by the root of the number of heads.
    """
    projected = self.correct.project(module, name, x)
    return projected * self.sizes.heads**0.5 if name == "query" else projected


@fault(
    "multi_head_attention.split-without-transpose",
    "heads-are-slices",
    seam="split_heads",
    origin="B029; C: heads are made by a view, without a transpose",
)
def split_without_transpose(self: Hooks, x: Tensor) -> Tensor:
    """Heads are made by a view without a transpose. A head is a slice of the sequence."""
    batch, length, columns = x.shape
    heads = self.sizes.heads
    return x.reshape(batch, heads, length, columns // heads)


@fault("multi_head_attention.heads-interleaved", "heads-are-slices", seam="split_heads")
def heads_interleaved(self: Hooks, x: Tensor) -> Tensor:
    """Columns are dealt out to the heads in turn, not in slices.

    It trains as well as ever; a checkpoint from elsewhere gives another model.
    """
    batch, length, columns = x.shape
    heads = self.sizes.heads
    return x.reshape(batch, length, columns // heads, heads).permute(0, 3, 1, 2)


@fault("multi_head_attention.heads-merged-backwards", "heads-are-slices", seam="merge_heads")
def heads_merged_backwards(self: Hooks, x: Tensor) -> Tensor:
    """The heads are laid side by side from the last to the first.

    It trains as well as ever; a checkpoint from elsewhere gives another model.
    """
    return self.correct.merge_heads(x.flip(1))


@fault("multi_head_attention.columns-merged-interleaved", "heads-are-slices", seam="merge_heads")
def columns_merged_interleaved(self: Hooks, x: Tensor) -> Tensor:
    """Heads are split as slices and merged column by column.

    The output projection reads columns in another order than it was saved in.
    """
    return x.permute(0, 2, 3, 1).flatten(2)


@fault(
    "multi_head_attention.merged-without-transpose",
    "query-order",
    seam="merge_heads",
    origin="B028",
)
def merged_without_transpose(self: Hooks, x: Tensor) -> Tensor:
    """Heads are merged by a reshape, without being transposed back.

    The vector of one position is made of pieces of others; copy tasks still train.
    """
    batch, heads, length, width = x.shape
    return x.reshape(batch, length, heads * width)


@fault("multi_head_attention.heads-merged-with-batch", "batch-independence", seam="merge_heads")
def heads_merged_with_batch(self: Hooks, x: Tensor) -> Tensor:
    """Heads and samples, merged sample by sample, are taken apart head by head.

    Sequences get heads of each other; one sample or one head hides it.
    """
    batch, heads, length, width = x.shape
    apart = x.reshape(heads, batch, length, width).transpose(0, 1)
    return self.correct.merge_heads(apart.contiguous())


@fault("multi_head_attention.width-rounded-down", "indivisible-width-refused", seam="check_heads")
def width_rounded_down(self: Hooks) -> None:
    """An indivisible width is rounded down. Columns are missing, without an error."""
    return


@fault(
    "multi_head_attention.narrow-heads-rounded-down",
    "indivisible-width-refused",
    seam="check_heads",
)
def narrow_heads_rounded_down(self: Hooks) -> None:
    """The width is compared with the heads and not divided. Columns are missing beyond it."""
    if self.choices.head_width == "d/h" and self.sizes.d_model < self.sizes.heads:
        self.correct.check_heads()


@fault(
    "multi_head_attention.width-asserted",
    "indivisible-width-named",
    seam="check_heads",
    origin="A: asserts d % h == 0",
    kind="wording",
)
def width_asserted(self: Hooks) -> None:
    """A bare assertion checks the width. It names no numbers, and is skipped under python -O."""
    if self.choices.head_width == "d/h" and self.sizes.d_model % self.sizes.heads:
        raise AssertionError


@fault(
    "multi_head_attention.width-refused-without-numbers",
    "indivisible-width-named",
    seam="check_heads",
    kind="wording",
)
def width_refused_without_numbers(self: Hooks) -> None:
    """The error names neither the width nor the heads. The user has to find the wrong size."""
    if self.choices.head_width == "d/h" and self.sizes.d_model % self.sizes.heads:
        raise ValueError("The model width must be divisible by the number of heads.")


@fault("multi_head_attention.many-heads-in-reverse", "formula", seam="merge_heads")
def many_heads_in_reverse(self: Hooks, x: Tensor) -> Tensor:
    """Four or more heads are merged in reverse order. Tests with two heads pass."""
    return self.correct.merge_heads(x.flip(1) if x.shape[1] >= 4 else x)
