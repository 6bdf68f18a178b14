"""Unusual caches of keys and values, each in the reference model `plain`."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.reference_models import Cache, Kept, Mask, Node
from attentest.faults.reference_models.hooks.cache import Pair
from attentest.faults.reference_models.plain import Plain
from attentest.faults.unusual.caches.restyled import restyled

ROOM = 160


class StaticBuffers(Plain):
    """Buffers of one size; what lies behind the last token is hidden by the mask."""

    def empty_entries(self, layers: int, memory: Tensor) -> list[Any]:
        """Return buffers full of numbers that must never be used."""
        shape = len(memory), self.sizes.heads, ROOM, self.head_width()
        return [(memory.new_full(shape, 1e3), memory.new_full(shape, -1e3)) for _ in range(layers)]

    def extend_entry(self, cache: Kept, number: int, new: Pair) -> Pair:
        """Write new keys and values in place."""
        end = cache.tokens.shape[1]
        places = torch.arange(end - new[0].shape[2], end)
        for buffer, one in zip(cache.own[number], new, strict=True):
            buffer.index_copy_(2, places, one)
        pair: Pair = cache.own[number]
        return pair

    def mask_of_step(self, cache: Cache, first: int) -> Mask:
        """Return a mask (B, 1, N, ROOM)."""
        mask = super().mask_of_step(cache, first)
        return None if mask is None else functional.pad(mask, (0, ROOM - mask.shape[-1]))

    def reorder_cache(self, module: Node, cache: Cache, origin: Tensor) -> Cache:
        """Move the rows in place."""
        for pair in cache.own:
            for buffer in pair:
                buffer.copy_(buffer[origin])
        cache.tokens = cache.tokens[origin]
        return cache


class NestedTuples(Plain):
    """Tuples of tuples, with the sequence first and the heads merged into the batch."""

    def empty_entries(self, layers: int, memory: Tensor) -> list[Any]:
        """Return one tuple of keys and values of no token for each layer."""
        none = memory.new_zeros(0, len(memory) * self.sizes.heads, self.head_width())
        return [(none, none)] * layers

    def extend_entry(self, cache: Kept, number: int, new: Pair) -> Pair:
        """Put another tuple into the place of the old one."""
        joined = tuple(
            torch.cat([old, one.permute(2, 0, 1, 3).flatten(1, 2)])
            for old, one in zip(cache.own[number], new, strict=True)
        )
        cache.own = [*cache.own[:number], joined, *cache.own[number + 1 :]]
        return self._in_heads(joined[0]), self._in_heads(joined[1])

    def _in_heads(self, x: Tensor) -> Tensor:
        """Return (L, B * H, E) as (B, H, L, E)."""
        return x.view(len(x), -1, self.sizes.heads, x.shape[-1]).permute(1, 2, 0, 3)

    def reorder_entries(self, own: list[Any], origin: Tensor) -> list[Any]:
        """Index the rows of a batch that is merged with the heads."""
        heads = torch.arange(self.sizes.heads)
        rows = (origin[:, None] * self.sizes.heads + heads).flatten()
        return [tuple(one[:, rows] for one in pair) for pair in own]


class InputsKept(Plain):
    """A cache of the inputs of each layer, before the projections."""

    def attend_cached(
        self, layer: Node, x: Tensor, cache: Cache, number: int, mask: Mask
    ) -> Tensor:
        """Project the rows of all tokens so far to keys and values."""
        before = cache.own[number]
        rows = x if before is None else torch.cat([before, x], dim=1)
        cache.own[number] = rows
        attention = layer.self_attention
        pair = self.in_heads(attention, "key", rows), self.in_heads(attention, "value", rows)
        return self.attend_heads(attention, self.in_heads(attention, "query", x), pair, mask)

    def reorder_entries(self, own: list[Any], origin: Tensor) -> list[Any]:
        """Index the rows."""
        return [None if one is None else one.index_select(0, origin) for one in own]


class ListOfSteps(Plain):
    """A linked list of steps: a reordering is written down, and carried out when it is read."""

    def empty_entries(self, layers: int, memory: Tensor) -> list[Any]:
        """Return the ends of empty lists."""
        return [()] * layers

    def extend_entry(self, cache: Kept, number: int, new: Pair) -> Pair:
        """Add a link, then read all of them from the last one to the first."""
        cache.own[number] = (cache.own[number], new, None)
        pieces, rows = list[Pair](), torch.arange(len(new[0]))
        link = cache.own[number]
        while link:
            link, piece, order = link
            if order is not None:
                rows = order[rows]
            else:
                pieces.insert(0, (piece[0][rows], piece[1][rows]))
        keys, values = zip(*pieces, strict=True)
        return torch.cat(keys, dim=2), torch.cat(values, dim=2)

    def reorder_entries(self, own: list[Any], origin: Tensor) -> list[Any]:
        """Add a link without keys."""
        return [(one, None, origin) for one in own]


class HeldInTheModule(Plain):
    """The module holds its cache: a handle is None, and a start discards what was there."""

    def start_cache(self, module: Node, source: Tensor) -> Any:
        """Begin, and return nothing."""
        self.memory["cache"] = super().start_cache(module, source)

    def step_cache(self, module: Node, cache: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """Continue the one cache."""
        scores, self.memory["cache"] = super().step_cache(module, self.memory["cache"], tokens)
        return scores, None

    def reorder_cache(self, module: Node, cache: Any, origin: Tensor) -> Any:
        """Reorder the one cache, memory included."""
        held = super().reorder_cache(module, self.memory["cache"], origin)
        memory = [(key[origin], value[origin]) for key, value in held.memory]
        self.memory["cache"] = replace(held, memory=memory, source=held.source[origin])


class TokenByToken(Plain):
    """A chunk is taken apart, and every token is a step of its own."""

    def step_cache(self, module: Node, cache: Cache, tokens: Tensor) -> tuple[Tensor, Cache]:
        """Step once for each column."""
        found = []
        for one in torch.split(tokens, 1, dim=1):
            scores, cache = super().step_cache(module, cache, one)
            found.append(scores)
        return torch.cat(found, dim=1), cache


_cached = partial(restyled, "cached_decoding")

MEMBERS = (
    _cached(
        "static-buffers",
        StaticBuffers,
        "keys and values in buffers of one size, the rest of which is masked",
        cache_update="in-place",
    ),
    _cached(
        "nested-tuples",
        NestedTuples,
        "tuples of tuples, the sequence first, the heads merged into the batch; pre-norm",
        norm_placement="pre",
        final_norm="present",
    ),
    _cached("inputs-kept", InputsKept, "the inputs of the projections are kept, not the keys"),
    _cached(
        "linked-steps",
        ListOfSteps,
        "a linked list of steps, reordered when it is read; positions are learned",
        positional_encoding="learned",
    ),
    _cached(
        "cache-in-the-module",
        HeldInTheModule,
        "the module holds its only cache",
        cache_update="in-place",
        cache_sessions="one",
    ),
    _cached(
        "token-by-token",
        TokenByToken,
        "chunks are taken apart into single tokens, whose positions leave padding out",
        cache_positions="tokens",
        fully_masked_row="zero",
    ),
)
