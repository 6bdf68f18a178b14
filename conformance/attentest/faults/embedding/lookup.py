"""Faults in the row that a word gets, and in what else it depends on."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.embedding.shared import table_of
from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "embedding.ids-shifted",
    clause="embedding.lookup",
    wrong="Ids are shifted by one, from 1 on where they begin at 0.",
    effect="Every word has the vector of its neighbour; training from scratch hides it.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, (tokens + 1) % self.vocabulary_of(module))


@fault(
    "embedding.rows-normalised",
    clause="embedding.lookup",
    wrong="Rows are divided by their length.",
    effect="Rare and frequent words get the same size; the length is never trained.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.lookup(module, tokens)
    return rows / rows.norm(dim=-1, keepdim=True).clamp(min=1e-12)


@fault(
    "embedding.rows-capped",
    clause="embedding.lookup",
    wrong="Rows longer than 1 are cut to length 1, an option of the library left on.",
    effect="Long rows lose their length, short ones do not.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.lookup(module, tokens)
    return rows / rows.norm(dim=-1, keepdim=True).clamp(min=1.0)


@fault(
    "embedding.table-turned",
    clause="embedding.lookup",
    wrong="The table (V, D) is read as if it were stored as (D, V).",
    effect="Every vector is made of numbers of several words.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    table = table_of(module)
    turned = table.reshape(table.shape[1], table.shape[0]).t()
    rows: Tensor = turned[tokens]
    return rows


@fault(
    "embedding.pads-zeroed",
    clause="embedding.lookup",
    wrong="The vector of a pad is zero whatever its row holds.",
    effect="A checkpoint whose row is not zero gives another model at every pad.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.lookup(module, tokens)
    return rows.masked_fill((tokens == self.sizes.source_pad)[..., None], 0.0)


@fault(
    "embedding.positions-included",
    clause="embedding.no-positions",
    wrong="Positions are added here, and once more by the positional encoding.",
    effect="Positions count twice.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.embedding(module, tokens)
    return rows + self.position_table(rows.shape[1], rows.shape[2], rows.device).to(rows)


@fault(
    "embedding.scaled-by-length",
    clause="embedding.no-positions",
    wrong="The factor is the root of the number of tokens.",
    effect="The longer the sentence, the louder its words.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.lookup(module, tokens) * float(tokens.shape[-1] ** 0.5)


@fault(
    "embedding.neighbours-mixed",
    clause="embedding.no-positions",
    wrong="A tenth of each word's vector is that of the word before.",
    effect="The same word differs by what stands before it.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows = self.sound.lookup(module, tokens)
    before = torch.cat([rows[:, :1], rows[:, :-1]], dim=1)
    return 0.9 * rows + 0.1 * before


@fault(
    "embedding.ids-as-bytes",
    clause="embedding.lookup",
    wrong="Ids are taken modulo 256.",
    effect="In a real vocabulary most words share their vector with others.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, tokens % 256)
