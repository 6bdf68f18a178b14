"""The caches of both reference models: tensors that are joined, and buffers with room to spare."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.cache import CacheHooks, Kept, Pair

ROOM = 4
"""The number of tokens that a buffer begins with room for; it is doubled when it is full."""


class PlainCache(CacheHooks):
    """Every step joins the kept tensors with the new ones."""

    def empty_entries(self, layers: int, memory: Tensor) -> list[Pair | None]:
        """Return the entries of a target without tokens."""
        return [None] * layers

    def copy_entries(self, own: list[Pair | None]) -> list[Pair | None]:
        """Return another list of the same tensors, which never change."""
        return list(own)

    def extend_entry(self, cache: Kept, number: int, new: Pair) -> Pair:
        """Keep new keys and values (B, H, N, E) in an entry, and return all that are in it."""
        before = cache.own[number]
        joined = new if before is None else self.join_entries(before, new)
        cache.own[number] = joined
        return joined

    def join_entries(self, before: Pair, new: Pair) -> Pair:
        """Return keys and values, those of earlier tokens first."""
        return torch.cat([before[0], new[0]], dim=2), torch.cat([before[1], new[1]], dim=2)

    def reorder_entries(self, own: list[Pair | None], origin: Tensor) -> list[Pair | None]:
        """Return the entries of the rows `origin` (B,)."""
        return [None if one is None else (one[0][origin], one[1][origin]) for one in own]


@dataclass(frozen=True)
class Buffer:
    """Keys and values (2, B, H, R, E) with room for R tokens, of which `length` are there."""

    room: Tensor
    length: int = 0

    def filled(self) -> Pair:
        """Return what is there, (B, H, L, E) each."""
        keys, values = self.room[:, :, :, : self.length]
        return keys, values


class FusedCache(CacheHooks):
    """Every step writes into a buffer that has been allocated before."""

    def empty_entries(self, layers: int, memory: Tensor) -> list[Buffer]:
        """Return the entries of a target without tokens, like a memory (B, S, D)."""
        shape = 2, len(memory), self.key_heads(), ROOM, self.head_width()
        return [Buffer(memory.new_zeros(shape)) for _ in range(layers)]

    def copy_entries(self, own: list[Buffer]) -> list[Buffer]:
        """Return copies of the buffers."""
        return [replace(one, room=one.room.clone()) for one in own]

    def extend_entry(self, cache: Kept, number: int, new: Pair) -> Pair:
        """Write new keys and values (B, H, N, E) into an entry, and return all that are in it."""
        pair = torch.stack(new)
        held: Buffer = cache.own[number]
        end = held.length + pair.shape[3]
        room = self.with_room(held.room, end)
        room[:, :, :, held.length : end] = pair
        cache.own[number] = Buffer(room, end)
        filled: Pair = cache.own[number].filled()
        return filled

    def with_room(self, room: Tensor, length: int) -> Tensor:
        """Return a buffer for `length` tokens: the given one, or one of twice its size or more."""
        while room.shape[3] < length:
            room = torch.cat([room, torch.zeros_like(room)], dim=3)
        return room

    def reorder_entries(self, own: list[Buffer], origin: Tensor) -> list[Buffer]:
        """Return the entries of the rows `origin` (B,)."""
        return [replace(one, room=one.room.index_select(1, origin)) for one in own]
