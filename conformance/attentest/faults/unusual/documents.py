"""Unusual decoder-only models that separate the documents of a row."""

from itertools import pairwise

import torch
from torch import Tensor

from attentest.faults.unusual.language_models import (
    LIMITS,
    LLAMA,
    LLAMA_TABLE,
    Given,
    GroupedByEinsum,
    hidden,
    places,
)
from attentest.faults.unusual.member import module


class DocumentsApart(GroupedByEinsum):
    """Every document of every row is a text of its own, and computed alone."""

    def forward(self, tokens: Tensor, mask: Given = None, positions: Given = None) -> Tensor:
        """Return logits (B, T, V)."""
        at, rows = places(tokens, positions), []
        for row in range(len(tokens)):
            own = slice(row, row + 1)
            real = None if mask is None else mask[own]
            rows.append(torch.cat(list(self._documents(tokens[own], real, at[own])), dim=1))
        return torch.cat(rows)

    def _documents(self, tokens: Tensor, mask: Given, at: Tensor) -> list[Tensor]:
        breaks = (at.diff(dim=1) != 1)[0].nonzero().flatten() + 1
        edges = [0, *breaks.tolist(), tokens.shape[1]]
        found = []
        for start, end in pairwise(edges):
            span = slice(start, end)
            unseen = hidden(tokens[:, span], None if mask is None else mask[:, span])
            found.append(self._run(tokens[:, span], unseen, at[:, span]))
        return found


class DocumentsByEnds(GroupedByEinsum):
    """A token is hidden from all tokens behind the last of its document."""

    def forward(self, tokens: Tensor, mask: Given = None, positions: Given = None) -> Tensor:
        """Return logits (B, T, V)."""
        at = places(tokens, positions)
        column = torch.arange(tokens.shape[1], device=tokens.device)
        ending = torch.ones_like(tokens, dtype=torch.bool)
        ending[:, :-1] = at[:, 1:] - at[:, :-1] != 1
        last = torch.where(ending, column, tokens.shape[1]).flip(1).cummin(dim=1).values.flip(1)
        gone = column[None, :, None] > last[:, None, :]
        return self._run(tokens, hidden(tokens, mask) | gone, at)


MEMBERS = tuple(
    module(
        "language_model",
        build,
        title,
        LLAMA_TABLE,
        LIMITS,
        **{**LLAMA, "packed_documents": "by-positions"},
    )
    for build, title in (
        (DocumentsApart, "Llama that computes every document of a row as a text of its own"),
        (DocumentsByEnds, "Llama that hides a token from all behind the end of its document"),
    )
)
