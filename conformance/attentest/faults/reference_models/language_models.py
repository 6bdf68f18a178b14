"""The decoder-only models of both reference models: by slices and masks, and by comparisons."""

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.reference_models.hooks.attention import Mask
from attentest.faults.reference_models.hooks.language_model import LanguageModelHooks


class PlainLanguageModel(LanguageModelHooks):
    """Ranges that are expanded, and triangles."""

    def column_places(self, tokens: Tensor) -> Tensor:
        """Return the numbers (B, T) of the columns."""
        batch, length = tokens.shape
        return torch.arange(length, device=tokens.device).expand(batch, length)

    def counted_places(self, mask: Tensor) -> Tensor:
        """Return the numbers (B, T) of real tokens before each one, 0 at the padding before."""
        return (mask.long().cumsum(dim=1) - 1).clamp(min=0)

    def pick_rows(self, rows: Tensor, places: Tensor) -> Tensor:
        """Return those of the rows (L, D) that are at the places (B, T), as (B, T, D)."""
        return rows[places]

    def same_document(self, places: Tensor) -> Tensor:
        """Return which tokens are of one document, (B, 1, T, T), for positions (B, T)."""
        number = functional.pad(places.diff(dim=1) != 1, (1, 0)).long().cumsum(dim=1)
        return (number[:, :, None] == number[:, None, :])[:, None]

    def visible_keys(self, length: int, mask: Mask, device: torch.device) -> Tensor:
        """Return the keys that queries see, (1, 1, T, T) or (B, 1, T, T); padding sees itself."""
        earlier = torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]
        if mask is None:
            return earlier
        itself = torch.eye(length, dtype=torch.bool, device=device)
        return earlier & mask[:, None, None, :] | itself


class FusedLanguageModel(LanguageModelHooks):
    """Running sums, gathered rows and compared numbers."""

    def column_places(self, tokens: Tensor) -> Tensor:
        """Return the numbers (B, T) of the columns."""
        return torch.ones_like(tokens, dtype=torch.long).cumsum(dim=1) - 1

    def counted_places(self, mask: Tensor) -> Tensor:
        """Return the numbers (B, T) of real tokens before each one, 0 at the padding before."""
        real = mask.long()
        return torch.relu(real.cumsum(dim=1) - 1)

    def pick_rows(self, rows: Tensor, places: Tensor) -> Tensor:
        """Return those of the rows (L, D) that are at the places (B, T), as (B, T, D)."""
        return rows.index_select(0, places.flatten()).view(*places.shape, -1)

    def same_document(self, places: Tensor) -> Tensor:
        """Return which tokens are of one document, (B, 1, T, T), for positions (B, T)."""
        column = self.column_places(places)
        ahead = places - column  # the same for tokens of one document, and for some of others
        new = torch.ones_like(places, dtype=torch.bool)
        new[:, 1:] = ahead[:, 1:] != ahead[:, :-1]
        first = torch.where(new, column, 0).cummax(dim=1).values
        return first[:, None, :, None].eq(first[:, None, None, :])

    def visible_keys(self, length: int, mask: Mask, device: torch.device) -> Tensor:
        """Return the keys that queries see, (1, 1, T, T) or (B, 1, T, T); padding sees itself."""
        number = torch.arange(length, device=device)
        query, key = number[:, None], number[None, :]
        if mask is None:
            return (key <= query)[None, None]
        seen = (key < query)[None] & mask[:, None, :].expand(-1, length, -1)
        return (seen | (key == query))[:, None]
