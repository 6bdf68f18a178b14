"""Faults in the row of a token, and in what else it depends on."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


def table_of(module: Node) -> Tensor:
    """Return the table of an embedding: its one parameter, whatever its name."""
    return next(module.parameters())


@fault("embedding.ids-shifted", "lookup", seam="lookup")
def ids_shifted(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Ids are shifted by one, from 1 on where they begin at 0.

    Every token has the vector of its neighbour; training from scratch hides it.
    """
    return self.correct.lookup(module, (tokens + 1) % self.vocabulary_of(module))


@fault("embedding.rows-normalised", "lookup", seam="lookup")
def rows_normalised(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Rows are divided by their length. The length of a row is never trained."""
    rows = self.correct.lookup(module, tokens)
    lengths: Tensor = rows.norm(dim=-1, keepdim=True)
    return rows / lengths.clamp(min=1e-12)


@fault("embedding.rows-capped", "lookup", seam="lookup")
def rows_capped(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Rows longer than 1 are cut to length 1, an option of the library left on.

    Long rows lose their length, short ones do not.
    """
    rows = self.correct.lookup(module, tokens)
    lengths: Tensor = rows.norm(dim=-1, keepdim=True)
    return rows / lengths.clamp(min=1.0)


@fault("embedding.table-turned", "lookup", seam="lookup")
def table_turned(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """The table (V, D) is read as if stored as (D, V). Every vector mixes several tokens."""
    table = table_of(module)
    turned = table.reshape(table.shape[1], table.shape[0]).t()
    rows: Tensor = turned[tokens]
    return rows


@fault("embedding.pads-zeroed", "lookup", seam="lookup")
def pads_zeroed(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """The vector of padding is zero whatever its row holds.

    A checkpoint with another row gives other outputs.
    """
    rows = self.correct.lookup(module, tokens)
    return rows.masked_fill((tokens == self.sizes.source_pad)[..., None], 0.0)


@fault("embedding.positions-included", "no-positions", seam="embedding")
def positions_included(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Positions are added here and by the positional encoding. Positions count twice."""
    rows = self.correct.embedding(module, tokens)
    return rows + self.position_table(rows.shape[1], rows.shape[2], rows.device).to(rows)


@fault("embedding.scaled-by-length", "no-positions", seam="embedding")
def scaled_by_length(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """The factor is the root of the number of tokens. Vectors grow with the length."""
    return self.lookup(module, tokens) * float(tokens.shape[-1] ** 0.5)


@fault("embedding.neighbours-mixed", "no-positions", seam="lookup")
def neighbours_mixed(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """A tenth of each vector is that of the token before. A token depends on its neighbour."""
    rows = self.correct.lookup(module, tokens)
    before = torch.cat([rows[:, :1], rows[:, :-1]], dim=1)
    return 0.9 * rows + 0.1 * before


@fault("embedding.ids-as-bytes", "lookup", seam="lookup")
def ids_as_bytes(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Ids are taken modulo 256. In a real vocabulary most tokens share their vector."""
    return self.correct.lookup(module, tokens % 256)
