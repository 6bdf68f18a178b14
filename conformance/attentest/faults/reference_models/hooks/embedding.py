"""The hooks of the token embedding and of the positional encoding."""

from abc import abstractmethod

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.modules import Node
from attentest_spec.parameters import first_position

Device = torch.device | None


class EmbeddingHooks(Base):
    """Tokens become vectors."""

    @abstractmethod
    def make_embedding(self, vocabulary: int) -> Node:
        """Build a table of `vocabulary` rows."""

    def embedding(self, module: Node, tokens: Tensor) -> Tensor:
        """Return the scaled row of every token, (B, S, D)."""
        self.check_ids(tokens, self.vocabulary_of(module))
        return self.scale_embedding(self.lookup(module, tokens), self.sizes.d_model)

    @abstractmethod
    def vocabulary_of(self, module: Node) -> int:
        """Return the number of rows of the table."""

    def check_ids(self, tokens: Tensor, vocabulary: int) -> None:
        """Refuse ids outside of the vocabulary."""
        if tokens.device.type == "meta":
            return
        foreign = tokens[(tokens < 0) | (tokens >= vocabulary)]
        if foreign.numel():
            raise IndexError(
                f"The token id {int(foreign[0])} is not in the vocabulary of {vocabulary} ids."
            )

    @abstractmethod
    def lookup(self, module: Node, tokens: Tensor) -> Tensor:
        """Return the row of every token."""

    def scale_embedding(self, x: Tensor, d_model: int) -> Tensor:
        """Multiply by the root of the model width where that is chosen."""
        return x * d_model**0.5 if self.choices.embedding_scale == "sqrt-d" else x


class PositionHooks(Base):
    """Positions are added to vectors."""

    @abstractmethod
    def make_positions(self) -> Node:
        """Build the positional encoding: a fixed table, a learned one, or nothing."""

    @abstractmethod
    def hold_table(self, module: Node, table: Tensor) -> None:
        """Keep a fixed table in `module` (a model that keeps none never calls this)."""

    def positional_encoding(self, module: Node, x: Tensor) -> Tensor:
        """Add to x (B, S, D) the row of each position, then apply dropout."""
        return self.drop_embedded(module, self.add_positions(module, x))

    def add_positions(self, module: Node, x: Tensor) -> Tensor:
        """Add to x (B, S, D) the row of each position."""
        if self.choices.positional_encoding == "none":
            return x
        return self.add_rows(x, self.position_rows(module, self.length_of(x), x.device))

    def length_of(self, x: Tensor) -> int:
        """Return how many positions x (B, S, D) has."""
        return x.shape[1]

    def add_rows(self, x: Tensor, rows: Tensor) -> Tensor:
        """Add rows (S, D) to every sample of x (B, S, D), in the precision of x."""
        return x + rows.to(x.dtype)

    def check_length(self, length: int, rows: int) -> None:
        """Refuse an input that is longer than a table."""
        if length > rows:
            raise ValueError(
                f"The input has {length} positions; the longest that is served is {rows}."
            )

    @abstractmethod
    def position_rows(self, module: Node, length: int, device: Device) -> Tensor:
        """Return the rows (S, D) of the first `length` positions."""

    def position_table(self, length: int, d_model: int, device: Device = None) -> Tensor:
        """Return sines and cosines for `length` positions, in float64."""
        angles = self.angles(self.positions(length, device), self.frequencies(d_model, device))
        return self.round_table(self.arrange(angles.sin(), angles.cos(), d_model))

    def first_position(self) -> int:
        """Return the row of the first position."""
        return first_position(self.choices)

    def positions(self, length: int, device: Device) -> Tensor:
        """Return the numbers of the positions, from that of the first one on."""
        first = self.first_position()
        return torch.arange(first, first + length, dtype=torch.float64, device=device)

    def exponents(self, d_model: int, device: Device) -> Tensor:
        """Return 2i/d for every pair i of columns, or as the chosen encoding has it."""
        option = self.choices.positional_encoding
        inclusive = option == "halves-inclusive"
        count = d_model // 2 if inclusive else (d_model + 1) // 2
        pairs = torch.arange(count, dtype=torch.float64, device=device)
        if inclusive:
            return pairs / max(count - 1, 1)
        return pairs * (4 if option == "doubled-exponent" else 2) / d_model

    def round_table(self, table: Tensor) -> Tensor:
        """Round sines and cosines to single precision where that is chosen."""
        return table.float().double() if self.choices.position_arithmetic == "float32" else table

    def scale_rows(self, rows: Tensor) -> Tensor:
        """Divide rows of a learned table by the root of the model width where that is chosen."""
        scaled = self.choices.positional_encoding == "learned-scaled"
        return rows / rows.shape[-1] ** 0.5 if scaled else rows

    @abstractmethod
    def frequencies(self, d_model: int, device: Device) -> Tensor:
        """Return the angle between neighbouring positions for every pair of columns."""

    def angles(self, positions: Tensor, frequencies: Tensor) -> Tensor:
        """Return the angle (S, pairs) of every position and pair."""
        return positions[:, None] * frequencies

    @abstractmethod
    def arrange(self, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
        """Put sines and cosines (S, pairs) into the columns (S, D), in turn or in halves."""

    def drop_embedded(self, module: Node, x: Tensor) -> Tensor:
        """Apply dropout to the sum of embedding and position."""
        return self.dropout(module, x)
