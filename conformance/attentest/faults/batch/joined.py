"""Faults in padded and in packed sequences."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

LEFT = {"padding_side": "left"}


@fault("batch.sorted-by-length", "padded-tokens", seam="padded_length")
def sorted_by_length(self: Hooks, rows: list[Tensor]) -> int:
    """Sequences are sorted by length. They no longer belong to their translations."""
    rows.sort(key=len)
    return self.correct.padded_length(rows)


@fault("batch.tokens-reversed", "padded-tokens", seam="add_marks")
def tokens_reversed(self: Hooks, row: Tensor) -> Tensor:
    """Tokens are in reverse. The order of words is learned backwards."""
    return self.correct.add_marks(row.flip(0))


@fault("batch.right-for-left", "padding-side", seam="pad_rows", choices=LEFT)
def right_for_left(self: Hooks, rows: list[Tensor], length: int) -> tuple[Tensor, Tensor]:
    """Padding is on the right where the left is declared. The last column is padding."""
    right = self.choices.but(padding_side="right")
    return type(self.correct)(self.sizes, right).pad_rows(rows, length)


@fault("batch.left-for-right", "padding-side", seam="pad_rows")
def left_for_right(self: Hooks, rows: list[Tensor], length: int) -> tuple[Tensor, Tensor]:
    """Padding is on the left where the right is declared. Positions begin with padding."""
    left = self.choices.but(padding_side="left")
    return type(self.correct)(self.sizes, left).pad_rows(rows, length)


@fault("batch.end-missing", "sequence-marks", seam="add_marks")
def end_missing(self: Hooks, row: Tensor) -> Tensor:
    """There is no end token. Generation never stops."""
    return torch.cat((row.new_tensor([self.sizes.start]), row))


@fault("batch.start-missing", "sequence-marks", seam="add_marks")
def start_missing(self: Hooks, row: Tensor) -> Tensor:
    """There is no start token. The first word is never learned."""
    return torch.cat((row, row.new_tensor([self.sizes.end])))


@fault("batch.marks-swapped", "sequence-marks", seam="add_marks")
def marks_swapped(self: Hooks, row: Tensor) -> Tensor:
    """Start and end are swapped. Generation stops at once."""
    start, end = row.new_tensor([self.sizes.start]), row.new_tensor([self.sizes.end])
    return torch.cat((end, row, start))


@fault("batch.padded-to-a-fixed-length", "padded-length", seam="padded_length")
def padded_to_a_fixed_length(self: Hooks, rows: list[Tensor]) -> int:
    """Every batch is as long as the longest input allowed. Most of it is padding."""
    return max(self.sizes.max_length, self.correct.padded_length(rows))


@fault("batch.padded-to-the-longest-ever", "padded-length", seam="padded_length", kind="state")
def padded_to_the_longest_ever(self: Hooks, rows: list[Tensor]) -> int:
    """The length of the longest batch so far is kept. Batches never become shorter."""
    longest = max(self.memory.get("longest", 0), self.correct.padded_length(rows))
    self.memory["longest"] = longest
    return int(longest)


@fault("batch.kept-by-value", "kept-by-position", seam="kept", origin="M008")
def kept_by_value(self: Hooks, padded: Tensor, keep: Tensor) -> Tensor:
    """The mask is made from the tokens. An end that is the pad is never learned."""
    return padded != self.sizes.target_pad


@fault("batch.end-not-kept", "kept-by-position", seam="kept", origin="M008")
def end_not_kept(self: Hooks, padded: Tensor, keep: Tensor) -> Tensor:
    """The mask leaves out the end token. It is never learned, and generation does not stop."""
    return keep & (padded != self.sizes.end)


@fault("batch.packed-shifted-as-a-whole", "packed-steps", seam="packed_steps", origin="M004")
def packed_shifted_as_a_whole(self: Hooks, rows: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The packed row is shifted as a whole. The end of a sequence begins the next one."""
    read, _ = self.correct.packed_steps(rows)
    whole = torch.cat((read, rows[-1][-1:]))
    return read, whole[1:]


@fault("batch.packed-not-shifted", "packed-steps", seam="packed_steps", origin="M001")
def packed_not_shifted(self: Hooks, rows: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Packed targets are the packed inputs. The model learns to copy."""
    read, _ = self.correct.packed_steps(rows)
    return read, read


@fault("batch.packed-mask-causal-alone", "packed-mask", seam="packed_mask")
def packed_mask_causal_alone(self: Hooks, number: Tensor, position: Tensor) -> Tensor:
    """The packed mask is causal alone. Every sequence reads those before it."""
    place = torch.arange(len(number))
    return place[:, None] >= place[None, :]


@fault("batch.packed-mask-without-causal", "packed-mask", seam="packed_mask")
def packed_mask_without_causal(self: Hooks, number: Tensor, position: Tensor) -> Tensor:
    """The packed mask has blocks alone. Every query reads what it has to give."""
    return number[:, None] == number[None, :]


@fault("batch.packed-positions-run-on", "packed-positions", seam="packed_batch")
def packed_positions_run_on(
    self: Hooks, module: Node, tokens: Tensor, lengths: Tensor
) -> tuple[Tensor, ...]:
    """Positions run on through the row. Later sequences are at positions that no input has."""
    read, wanted, position, mask = self.correct.packed_batch(module, tokens, lengths)
    return read, wanted, torch.arange(position.shape[1])[None], mask


@fault("batch.packed-positions-from-one", "packed-positions", seam="packed_batch")
def packed_positions_from_one(
    self: Hooks, module: Node, tokens: Tensor, lengths: Tensor
) -> tuple[Tensor, ...]:
    """Positions begin with 1. The row of the first position is never trained."""
    read, wanted, position, mask = self.correct.packed_batch(module, tokens, lengths)
    return read, wanted, position + 1, mask
