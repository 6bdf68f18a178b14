"""The hooks of batches: shifted, padded and packed."""

from abc import abstractmethod

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.masks import MaskHooks
from attentest.faults.reference_models.modules import Node

Packed = tuple[Tensor, Tensor, Tensor, Tensor]


class BatchHooks(MaskHooks):
    """Sequences become what a model reads and what it has to give."""

    def batch(
        self, module: Node, source: Tensor, target: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return input and target of the decoder (B, T), both masks, and the number of targets."""
        read, wanted = self.decoder_input(target), self.decoder_target(target)
        return (
            read,
            wanted,
            self.batch_source_mask(source, target),
            self.batch_target_mask(read, wanted),
            self.count_targets(read, wanted),
        )

    @abstractmethod
    def decoder_input(self, target: Tensor) -> Tensor:
        """Return what the decoder reads (B, T) of a target that is one longer."""

    @abstractmethod
    def decoder_target(self, target: Tensor) -> Tensor:
        """Return what the decoder has to give (B, T) of a target that is one longer."""

    def batch_source_mask(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the mask of the source, (B, 1, 1, S)."""
        return self.padding_mask(source, self.batch_pads()[0])

    def batch_target_mask(self, read: Tensor, wanted: Tensor) -> Tensor:
        """Return the mask of what the decoder reads, (B, 1, T, T)."""
        return self.target_mask(read, self.batch_pads()[1])

    def count_targets(self, read: Tensor, wanted: Tensor) -> Tensor:
        """Return the number of targets that are no padding."""
        return (wanted != self.batch_pads()[1]).sum()

    def batch_pads(self) -> tuple[int, int]:
        """Return the pad ids of the source and of the target."""
        return self.sizes.source_pad, self.sizes.target_pad

    def padded_batch(self, module: Node, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return padded tokens (B, L) and the mask of what belongs to a sequence."""
        rows = [self.add_marks(one) for one in self.sequences(tokens, lengths)]
        padded, keep = self.pad_rows(rows, self.padded_length(rows))
        return padded, self.kept(padded, keep)

    def sequences(self, tokens: Tensor, lengths: Tensor) -> list[Tensor]:
        """Return the sequences one by one."""
        return list(torch.split(tokens, lengths.tolist()))

    def add_marks(self, row: Tensor) -> Tensor:
        """Return a sequence with its start and end."""
        start, end = row.new_tensor([self.sizes.start]), row.new_tensor([self.sizes.end])
        around = {"start-and-end": [start, row, end], "end": [row, end], "none": [row]}
        return torch.cat(around[self.choices.sequence_marks])

    def padded_length(self, rows: list[Tensor]) -> int:
        """Return the length that all rows are padded to."""
        return max(len(row) for row in rows)

    @abstractmethod
    def pad_rows(self, rows: list[Tensor], length: int) -> tuple[Tensor, Tensor]:
        """Return the rows as one array (B, L), and where they are in it."""

    def kept(self, padded: Tensor, keep: Tensor) -> Tensor:
        """Return the mask of what belongs to a sequence, known by the position."""
        return keep

    def packed_batch(self, module: Node, tokens: Tensor, lengths: Tensor) -> Packed:
        """Return input, target and positions (1, M), and the mask (1, 1, M, M)."""
        rows = self.sequences(tokens, lengths)
        numbers = [torch.full((len(row) - 1,), place) for place, row in enumerate(rows)]
        number = torch.cat(numbers).to(tokens.device)
        position = self.packed_positions(number)
        read, wanted = self.packed_steps(rows)
        mask = self.packed_mask(number, self.packed_positions(number))
        return read[None], wanted[None], position[None], mask[None, None]

    def packed_steps(self, rows: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return what is read and what is to be given, (M,) each."""
        return torch.cat([row[:-1] for row in rows]), torch.cat([row[1:] for row in rows])

    @abstractmethod
    def packed_positions(self, number: Tensor) -> Tensor:
        """Return the position (M,) of every step in the sequence whose `number` (M,) is given."""

    def packed_mask(self, number: Tensor, position: Tensor) -> Tensor:
        """Return the keys (M, M) of the own sequence that are not after the query."""
        own = number[:, None] == number[None, :]
        return own & (position[:, None] >= position[None, :])
