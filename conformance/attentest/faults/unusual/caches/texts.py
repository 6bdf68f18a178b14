"""Unusual caches of decoder-only models, each in the reference model `plain`."""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.reference_models import (
    Kept,
    Mask,
    Node,
    TextCache,
)
from attentest.faults.reference_models.hooks.cache import Pair
from attentest.faults.reference_models.plain import Plain
from attentest.faults.unusual.caches.restyled import restyled
from attentest_spec.choices import Value

ROOM = 160
LLAMA: dict[str, Value] = {
    "norm_kind": "rms",
    "block_norms": "pre",
    "final_norm": "present",
    "feed_forward_gate": "gated",
    "positional_encoding": "none",
    "attention_rotary": "query-and-key",
    "head_width": "d/h",
    "key_heads": "fewer",
    "projection_bias": "none",
}


class StaticSlots(Plain):
    """Buffers of the greatest length; what lies behind the last token is hidden by the mask."""

    def empty_entries(self, layers: int, memory: Tensor) -> list[Any]:
        """Return buffers full of numbers that must never be used."""
        shape = len(memory), self.key_heads(), ROOM, self.head_width()
        return [(memory.new_full(shape, 1e3), memory.new_full(shape, -1e3)) for _ in range(layers)]

    def extend_entry(self, cache: Kept, number: int, new: Pair) -> Pair:
        """Write new keys and values in place."""
        end = cache.tokens.shape[1]
        for buffer, one in zip(cache.own[number], new, strict=True):
            buffer[:, :, end - one.shape[2] : end] = one
        pair: Pair = cache.own[number]
        return pair

    def keys_of_text(self, cache: TextCache, first: int, mask: Mask) -> Tensor:
        """Return a mask (B, 1, N, ROOM)."""
        keep = super().keys_of_text(cache, first, mask)
        return functional.pad(keep, (0, ROOM - keep.shape[-1]))


class RingOfKeys(Plain):
    """A ring of as many keys as the window is wide: the slot of a token is its number modulo it."""

    def empty_entries(self, layers: int, memory: Tensor) -> list[Any]:
        """Return rings of zeros."""
        shape = 2, len(memory), self.key_heads(), self.sizes.window, self.head_width()
        return [memory.new_zeros(shape) for _ in range(layers)]

    def copy_entries(self, own: list[Any]) -> list[Any]:
        """Return copies of the rings."""
        return [one.clone() for one in own]

    def extend_entry(self, cache: Kept, number: int, new: Pair) -> Pair:
        """Read the ring in the order of the text, then write the new keys into it."""
        ring, size, count = cache.own[number], self.sizes.window, new[0].shape[2]
        first = cache.tokens.shape[1] - count
        slots = torch.arange(max(first - size, 0), first) % size
        both = torch.cat([ring[:, :, :, slots], torch.stack(new)], dim=3)
        last = torch.arange(max(first + count - size, first), first + count)
        ring[:, :, :, last % size] = both[:, :, :, both.shape[3] - len(last) :]
        key, value = both
        return key, value

    def near_kept(self, keep: Tensor, query: Tensor, key: Tensor) -> Mask:
        """Return the mask of the keys that are left."""
        return super().near_kept(keep[..., -key.shape[2] :], query, key)

    def reorder_entries(self, own: list[Any], origin: Tensor) -> list[Any]:
        """Index the rows of the rings."""
        return [one[:, origin] for one in own]


class TurnedWhenRead(Plain):
    """Keys are kept as they were projected, and turned by their positions in every step."""

    def attend_text(
        self, attention: Node, x: Tensor, cache: TextCache, number: int, keep: Tensor
    ) -> Tensor:
        """Turn all keys, and the new queries as the last of them."""
        query, key, value = (self.in_heads(attention, one, x) for one in ("query", "key", "value"))
        keys, values = self.keep_new(cache, number, (key, value))
        rows = cache.places.to(torch.float64)
        cosines, sines = self.turn_tables(attention.rotary, rows, keys)
        new = slice(keys.shape[2] - x.shape[1], None)
        turned = self.turn(keys, cosines, sines)
        query = self.turn(query, cosines[:, new], sines[:, new])
        return self.attend_kept(attention, query, self.spread_kept((turned, values)), keep)


class KeptInBlocks(Plain):
    """The model holds its only cache: a handle is None, and a start discards what was there."""

    def start_text(self, module: Node, rows: int) -> Any:
        """Begin, and return nothing."""
        self.memory["cache"] = super().start_text(module, rows)

    def step_text(
        self,
        module: Node,
        cache: Any,
        tokens: Tensor,
        mask: Mask = None,
        positions: Tensor | None = None,
    ) -> tuple[Tensor, Any]:
        """Continue the one cache."""
        held = self.memory["cache"]
        scores, self.memory["cache"] = super().step_text(module, held, tokens, mask, positions)
        return scores, None

    def reorder_text(self, module: Node, cache: Any, origin: Tensor) -> Any:
        """Reorder the one cache."""
        self.memory["cache"] = super().reorder_text(module, self.memory["cache"], origin)


class OneAfterAnother(Plain):
    """A chunk is taken apart, and every token is a step of its own."""

    def step_text(
        self,
        module: Node,
        cache: TextCache,
        tokens: Tensor,
        mask: Mask = None,
        positions: Tensor | None = None,
    ) -> tuple[Tensor, TextCache]:
        """Step once for each column."""
        found = []
        for number in range(tokens.shape[1]):
            here = slice(number, number + 1)
            end = cache.tokens.shape[1] + 1
            seen = None if mask is None else mask[:, :end]
            own = None if positions is None else positions[:, here]
            scores, cache = super().step_text(module, cache, tokens[:, here], seen, own)
            found.append(scores)
        return torch.cat(found, dim=1), cache


class EveryQueryHead(Plain):
    """Keys and values are kept once for every head of queries."""

    def keep_new(self, cache: TextCache, number: int, new: Pair) -> Pair:
        """Repeat the heads before they are kept."""
        return super().keep_new(cache, number, self.spread_kept(new))


class RowsBeforeProjection(Plain):
    """The inputs of attention are kept, and keys and values are made of them in every step."""

    def attend_text(
        self, attention: Node, x: Tensor, cache: TextCache, number: int, keep: Tensor
    ) -> Tensor:
        """Project the rows of all tokens so far to keys and values."""
        before = cache.own[number]
        rows = x if before is None else torch.cat([before, x], dim=1)
        cache.own[number] = rows
        key, value = (self.in_heads(attention, one, rows) for one in ("key", "value"))
        query = self.in_heads(attention, "query", rows)
        query, key = self.place_heads(attention, query, key, cache.places)
        new = query[:, :, query.shape[2] - x.shape[1] :]
        return self.attend_kept(attention, new, self.spread_kept((key, value)), keep)

    def reorder_entries(self, own: list[Any], origin: Tensor) -> list[Any]:
        """Index the rows."""
        return [None if one is None else one.index_select(0, origin) for one in own]


_cached = partial(restyled, "cached_language_model")

MEMBERS = (
    _cached(
        "static-slots",
        StaticSlots,
        "keys in slots of one number, the rest of which the mask hides; heads share keys",
        cache_update="in-place",
        **LLAMA,
    ),
    _cached(
        "ring-of-keys",
        RingOfKeys,
        "a ring of as many keys as the window is wide",
        attention_window="with-query",
        **LLAMA,
    ),
    _cached(
        "turned-when-read",
        TurnedWhenRead,
        "keys are kept before they are turned, and turned in every step",
        **LLAMA,
    ),
    _cached(
        "kept-in-blocks",
        KeptInBlocks,
        "the model holds its only cache; positions are learned",
        cache_update="in-place",
        cache_sessions="one",
        positional_encoding="learned",
    ),
    _cached(
        "one-after-another",
        OneAfterAnother,
        "chunks of a text are taken apart into single tokens, whose positions leave padding out",
        padded_positions="real-tokens",
        packed_documents="by-positions",
    ),
    _cached(
        "every-query-head",
        EveryQueryHead,
        "keys are kept once for every head of queries that shares them; slopes by distance",
        **{**LLAMA, "attention_rotary": "none", "relative_bias": "alibi"},
    ),
    _cached(
        "rows-before-projection",
        RowsBeforeProjection,
        "the inputs of attention are kept; scores are capped",
        score_cap=4.0,
        **LLAMA,
    ),
)
