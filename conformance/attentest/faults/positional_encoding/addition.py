"""Faults in the sum of embeddings and table."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Device, Hooks, Node


@fault("positional_encoding.scaled-by-root-width", "bounded", seam="add_rows")
def scaled_by_root_width(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """Positions are multiplied by the embedding's factor. Positions dominate the tokens."""
    return self.correct.add_rows(x, rows * self.sizes.d_model**0.5)


@fault("positional_encoding.scaled-down", "pairs-on-circle", seam="add_rows")
def scaled_down(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """Positions are divided by the root of the width. Tokens dominate the positions."""
    return self.correct.add_rows(x, rows / self.sizes.d_model**0.5)


@fault("positional_encoding.never-added", "rows-differ", seam="add_rows", origin="B043")
def never_added(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The table is made and never added. A sequence is a bag of words."""
    return x


@fault("positional_encoding.one-row-for-all", "rows-differ", seam="add_rows", origin="B119")
def one_row_for_all(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """Every position gets the first row. A sequence is a bag of words."""
    return self.correct.add_rows(x, rows[:1])


@fault("positional_encoding.positions-over-length", "prefix", seam="position_rows")
def positions_over_length(self: Hooks, module: Node, length: int, device: Device) -> Tensor:
    """Positions are divided by the length. One more token changes all positions."""
    share = self.correct.positions(length, device) / length
    angles = self.correct.angles(share, self.correct.frequencies(self.sizes.d_model, device))
    return self.correct.arrange(angles.sin(), angles.cos(), self.sizes.d_model)


@fault("positional_encoding.counted-from-the-end", "prefix", seam="position_rows")
def counted_from_the_end(self: Hooks, module: Node, length: int, device: Device) -> Tensor:
    """Positions are counted from the last token. One more token changes all positions."""
    return self.correct.position_rows(module, length, device).flip(0)


@fault("positional_encoding.multiplied", "added", seam="add_rows")
def multiplied(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The input is multiplied by the rows. Tokens become zero where a wave crosses zero."""
    return x * rows.to(x.dtype)


@fault("positional_encoding.input-scaled", "added", seam="add_rows")
def input_scaled(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The input is multiplied by the embedding's factor. Tokens are scaled twice."""
    return self.correct.add_rows(x * self.sizes.d_model**0.5, rows)


@fault("positional_encoding.averaged", "added", seam="add_rows")
def averaged(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """Input and rows are averaged. Both are half as large as they should be."""
    return self.correct.add_rows(x, rows) / 2


@fault("positional_encoding.zero-rows-skipped", "added", seam="add_rows", origin="B051")
def zero_rows_skipped(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """A row of zeros is taken for padding and gets no position. Positions depend on content."""
    return torch.where((x != 0).any(-1, keepdim=True), self.correct.add_rows(x, rows), x)


@fault(
    "positional_encoding.indexed-by-batch",
    "indexed-by-position",
    seam="add_positions",
    origin="B041",
)
def indexed_by_batch(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The table is indexed by sample. All tokens of a sequence have one position."""
    rows = self.correct.position_rows(module, x.shape[0], x.device)
    return x + rows[:, None].to(x.dtype)


@fault("positional_encoding.counted-through-the-batch", "indexed-by-position", seam="add_positions")
def counted_through_the_batch(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Positions are counted on from sequence to sequence. The second one starts late."""
    rows = self.correct.position_rows(module, x.shape[0] * x.shape[1], x.device)
    return x + rows.view(x.shape).to(x.dtype)


@fault("positional_encoding.first-sample-alone", "indexed-by-position", seam="add_rows")
def first_sample_alone(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """Positions are added to the first sample alone. The others are bags of words."""
    return torch.cat((self.correct.add_rows(x[:1], rows), x[1:]))


@fault("positional_encoding.kept-in-double", "shapes", seam="add_rows")
def kept_in_double(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The table is float64 and promotes the sum. Later layers run in float64, or raise."""
    return x + rows.double()


@fault("positional_encoding.kept-in-single", "shapes", seam="add_rows")
def kept_in_single(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The sum is returned in float32. Later layers raise, or run in single precision."""
    return self.correct.add_rows(x, rows).float()


@fault("positional_encoding.single-sample-squeezed", "shapes", seam="add_rows")
def single_sample_squeezed(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """Axes of length one are squeezed. One sample loses its batch axis."""
    return self.correct.add_rows(x, rows).squeeze(0)


@fault("positional_encoding.concatenated", "shapes", seam="add_rows")
def concatenated(self: Hooks, x: Tensor, rows: Tensor) -> Tensor:
    """The rows are concatenated with the input, not added. The width doubles."""
    return torch.cat((x, rows.to(x.dtype).expand_as(x)), dim=-1)
