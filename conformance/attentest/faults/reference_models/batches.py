"""The batches of both reference models: by slices and loops, and by indices."""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from attentest.faults.reference_models.hooks.batch import BatchHooks


class PlainBatch(BatchHooks):
    """Slices, and a loop over the sequences."""

    def decoder_input(self, target: Tensor) -> Tensor:
        """Return what the decoder reads (B, T) of a target that is one longer."""
        return target[:, :-1]

    def decoder_target(self, target: Tensor) -> Tensor:
        """Return what the decoder has to give (B, T) of a target that is one longer."""
        return target[:, 1:]

    def pad_rows(self, rows: list[Tensor], length: int) -> tuple[Tensor, Tensor]:
        """Return the rows as one array (B, L), and where they are in it."""
        padded = rows[0].new_full((len(rows), length), self.sizes.target_pad)
        keep = torch.zeros_like(padded, dtype=torch.bool)
        for number, row in enumerate(rows):
            left = self.choices.padding_side == "left"
            first = max(length - len(row), 0) if left else 0
            padded[number, first : first + len(row)] = row[:length]
            keep[number, first : first + len(row)] = True
        return padded, keep

    def packed_positions(self, number: Tensor) -> Tensor:
        """Return the position (M,) of every step in the sequence whose `number` (M,) is given."""
        counts = torch.bincount(number).tolist()
        return torch.cat([torch.arange(count) for count in counts]).to(number.device)


class FusedBatch(BatchHooks):
    """Indices that are computed for all sequences at once."""

    def decoder_input(self, target: Tensor) -> Tensor:
        """Return what the decoder reads (B, T) of a target that is one longer."""
        return target.narrow(1, 0, target.shape[1] - 1).clone()

    def decoder_target(self, target: Tensor) -> Tensor:
        """Return what the decoder has to give (B, T) of a target that is one longer."""
        return target.roll(-1, dims=1).narrow(1, 0, target.shape[1] - 1)

    def pad_rows(self, rows: list[Tensor], length: int) -> tuple[Tensor, Tensor]:
        """Return the rows as one array (B, L), and where they are in it."""
        counts = torch.tensor([len(row) for row in rows])
        padded = pad_sequence(rows, batch_first=True, padding_value=self.sizes.target_pad)
        wide = length - padded.shape[1]
        padded = torch.nn.functional.pad(padded, (0, wide), value=self.sizes.target_pad)
        keep = torch.arange(length) < counts[:, None]
        if self.choices.padding_side == "right":
            return padded, keep
        place = (torch.arange(length) + counts[:, None]) % length
        return padded.gather(1, place), keep.gather(1, place)

    def packed_positions(self, number: Tensor) -> Tensor:
        """Return the position (M,) of every step in the sequence whose `number` (M,) is given."""
        return torch.arange(len(number)) - torch.searchsorted(number, number)
