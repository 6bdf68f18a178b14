"""Faults in how the table is added to the embeddings."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

Device = torch.device | None


@fault(
    "positional_encoding.scaled-by-root-width",
    clause="positional_encoding.bounded",
    wrong="Positions are multiplied by the embedding's factor.",
    effect="Positions drown the words.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows * self.sizes.d_model**0.5)


@fault(
    "positional_encoding.scaled-down",
    clause="positional_encoding.pairs-on-circle",
    wrong="Positions are divided by the root of the width.",
    effect="Words drown the positions.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows / self.sizes.d_model**0.5)


@fault(
    "positional_encoding.never-added",
    clause="positional_encoding.rows-differ",
    origin="B043",
    wrong="The table is made and never added.",
    effect="A sentence is a bag of words.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return x


@fault(
    "positional_encoding.one-row-for-all",
    clause="positional_encoding.rows-differ",
    origin="B119",
    wrong="Every position is given the row of the first.",
    effect="A sentence is a bag of words.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows[:1])


@fault(
    "positional_encoding.positions-over-length",
    clause="positional_encoding.prefix",
    wrong="Positions are divided by the length of the sentence.",
    effect="Adding a word changes the positions of all others.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    share = self.sound.positions(length, device) / length
    angles = self.sound.angles(share, self.sound.frequencies(self.sizes.d_model, device))
    return self.sound.arrange(angles.sin(), angles.cos(), self.sizes.d_model)


@fault(
    "positional_encoding.counted-from-the-end",
    clause="positional_encoding.prefix",
    wrong="Positions are counted from the last word.",
    effect="Adding a word changes the positions of all others.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    return self.sound.position_rows(module, length, device).flip(0)


@fault(
    "positional_encoding.multiplied",
    clause="positional_encoding.added",
    wrong="The input is multiplied by the rows.",
    effect="Words are zeroed where a wave crosses zero.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return x * rows.to(x.dtype)


@fault(
    "positional_encoding.input-scaled",
    clause="positional_encoding.added",
    wrong="The input is multiplied by the embedding's factor here.",
    effect="Applied once more in the embedding, words drown the positions.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x * self.sizes.d_model**0.5, rows)


@fault(
    "positional_encoding.averaged",
    clause="positional_encoding.added",
    wrong="Input and rows are averaged.",
    effect="Words and positions are half as large as they should be.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows) / 2


@fault(
    "positional_encoding.zero-rows-skipped",
    clause="positional_encoding.added",
    origin="B051",
    wrong="A row of zeros counts as padding and is given no position.",
    effect="What is added depends on what is in the sentence.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return torch.where((x != 0).any(-1, keepdim=True), self.sound.add_rows(x, rows), x)


@fault(
    "positional_encoding.indexed-by-batch",
    clause="positional_encoding.indexed-by-position",
    origin="B041",
    wrong="The table is indexed along the batch.",
    effect="All words of a sentence have one position, and each sentence another.",
)
def add_positions(self: Seams, module: Node, x: Tensor) -> Tensor:
    rows = self.sound.position_rows(module, x.shape[0], x.device)
    return x + rows[:, None].to(x.dtype)


@fault(
    "positional_encoding.counted-through-the-batch",
    clause="positional_encoding.indexed-by-position",
    wrong="Positions are counted on from one sentence to the next.",
    effect="The second sentence of a batch begins in the middle.",
)
def add_positions(self: Seams, module: Node, x: Tensor) -> Tensor:
    rows = self.sound.position_rows(module, x.shape[0] * x.shape[1], x.device)
    return x + rows.view(x.shape).to(x.dtype)


@fault(
    "positional_encoding.first-sample-alone",
    clause="positional_encoding.indexed-by-position",
    wrong="Positions are added to the first sentence of a batch alone.",
    effect="All other sentences are bags of words.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return torch.cat((self.sound.add_rows(x[:1], rows), x[1:]))


@fault(
    "positional_encoding.kept-in-double",
    clause="positional_encoding.shapes",
    wrong="The table is float64 and pulls the sum up to its precision.",
    effect="Everything after it is twice as large and slow, or fails.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return x + rows.double()


@fault(
    "positional_encoding.kept-in-single",
    clause="positional_encoding.shapes",
    wrong="The sum is returned in float32.",
    effect="Everything after it fails, or is pulled down to single precision.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows).float()


@fault(
    "positional_encoding.single-sample-squeezed",
    clause="positional_encoding.shapes",
    wrong="Axes of length one are squeezed away.",
    effect="A sentence alone loses its axis of samples.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return self.sound.add_rows(x, rows).squeeze(0)


@fault(
    "positional_encoding.concatenated",
    clause="positional_encoding.shapes",
    wrong="The rows are put beside the input and not added to it.",
    effect="The width doubles.",
)
def add_rows(self: Seams, x: Tensor, rows: Tensor) -> Tensor:
    return torch.cat((x, rows.to(x.dtype).expand_as(x)), dim=-1)
