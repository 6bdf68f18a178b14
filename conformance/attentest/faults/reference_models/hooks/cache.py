"""The hooks of decoding with kept keys and values."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.attention import Mask
from attentest.faults.reference_models.hooks.model import ModelHooks
from attentest.faults.reference_models.modules import Node

Pair = tuple[Tensor, Tensor]
"""Keys and values in heads, (B, H, L, E) each."""


@dataclass
class Kept:
    """The tokens so far, and one entry of `own` for every layer.

    `own` holds the keys and values of the tokens (B, L), in the form of the model.
    """

    own: list[Any]
    tokens: Tensor


@dataclass
class Cache(Kept):
    """The state between two steps: one entry of `memory` too for every layer.

    `memory` holds the keys and values of the memory `rows` (B, S, D), which `source` (B, S) are
    the tokens of.
    """

    source: Tensor
    rows: Tensor
    memory: list[Pair]


class CacheHooks(ModelHooks):
    """Start, step and reorder; a step computes the rows of new tokens alone."""

    def start_cache(self, module: Node, source: Tensor) -> Cache:
        """Encode the source (B, S), and return a cache without a target."""
        memory = self.pass_memory(self.memory_to_cache(module, source))
        layers = list(self.layers_of(module.decoder))
        return Cache(
            source=source,
            rows=memory,
            memory=[self.memory_pair(layer, memory) for layer in layers],
            own=self.empty_entries(len(layers), memory),
            tokens=source.new_zeros(len(source), 0),
        )

    def memory_to_cache(self, module: Node, source: Tensor) -> Tensor:
        """Return the memory (B, S, D), encoded once."""
        return self.encode(module, source)

    def memory_pair(self, layer: Node, memory: Tensor) -> Pair:
        """Return keys and values of the memory (B, S, D), computed once."""
        attention = self.sublayer_of(layer, "cross_attention")
        _, key, value = self.cross_inputs(memory, memory)
        return self.in_heads(attention, "key", key), self.in_heads(attention, "value", value)

    def in_heads(self, attention: Node, name: str, x: Tensor) -> Tensor:
        """Project x (B, L, D) and split it into heads."""
        return self.split_heads(self.project(attention, name, x))

    @abstractmethod
    def empty_entries(self, layers: int, memory: Tensor) -> list[Any]:
        """Return the entries of a target without tokens, like a memory (B, S, D)."""

    def step_cache(self, module: Node, cache: Cache, tokens: Tensor) -> tuple[Tensor, Cache]:
        """Return the scores (B, N, V) of new tokens (B, N), and the cache with them."""
        held = self.cache_to_change(cache)
        first = self.cached_length(held)
        held.tokens = self.join_tokens(held.tokens, tokens)
        x = self.embed_at(module, tokens, self.places_of_step(held, first))
        mask = self.mask_of_step(held, first)
        for number, layer in enumerate(self.layers_of(module.decoder)):
            x = self.cached_layer(layer, x, held, number, mask)
        return module.generator(self.finish_stack(module.decoder, x)), held

    def cache_to_change(self, cache: Cache) -> Cache:
        """Return the cache that a step writes into: a copy, or the given one, as chosen."""
        if self.choices.cache_update == "in-place":
            return cache
        return replace(cache, own=self.copy_entries(cache.own))

    @abstractmethod
    def copy_entries(self, own: list[Any]) -> list[Any]:
        """Return entries that can be extended while the given ones stay as they are."""

    def cached_length(self, cache: Cache) -> int:
        """Return the number of tokens in the cache."""
        return int(cache.tokens.shape[1])

    def places_of_step(self, cache: Cache, first: int) -> Tensor:
        """Return the positions (N,) or (B, N) of the tokens from the column `first` on."""
        tokens = cache.tokens
        if self.choices.cache_positions == "tokens":
            counted = (tokens != self.sizes.target_pad).cumsum(dim=1)
            return (counted - 1).clamp(min=0)[:, first:]
        return torch.arange(first, tokens.shape[1], device=tokens.device)

    def join_tokens(self, tokens: Tensor, new: Tensor) -> Tensor:
        """Return the target so far (B, L) with new tokens (B, N)."""
        return torch.cat([tokens, new], dim=1)

    def embed_at(self, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
        """Return tokens (B, N) embedded, at the positions `places`."""
        positions = self.positions_of(module, "target")
        x = self.embedding_of(module, "target")(tokens)
        if self.choices.positional_encoding != "none":
            rows = self.position_rows(positions, int(places.max()) + 1, tokens.device)
            x = self.add_rows(x, rows[places])
        return self.norm_embedded(module, "target", self.drop_embedded(positions, x))

    def mask_of_step(self, cache: Cache, first: int) -> Mask:
        """Return the mask (B, 1, N, L) of the new queries over all keys."""
        mask = self.target_mask_of(cache.tokens)
        return None if mask is None else mask[..., first:, :]

    def memory_mask_of_step(self, cache: Cache, x: Tensor) -> Mask:
        """Return the mask (B, 1, 1, S) of the memory."""
        return self.memory_mask_of(cache.source, cache.tokens)

    def cached_layer(self, layer: Node, x: Tensor, cache: Cache, number: int, mask: Mask) -> Tensor:
        """Apply the decoder layer `number` to the rows x (B, N, D) of new tokens."""
        steps = {
            "self_attention": lambda h: self.attend_cached(layer, h, cache, number, mask),
            "cross_attention": lambda h: self.attend_memory(layer, h, cache, number),
            "feed_forward": lambda h: self.feed(layer, h),
        }
        for name in self.decoder_order():
            x = self.residual(layer, self.norm_of(layer, name), x, steps[name])
        return x

    def attend_cached(
        self, layer: Node, x: Tensor, cache: Cache, number: int, mask: Mask
    ) -> Tensor:
        """Let the new rows attend to all, after their keys and values are kept."""
        attention = self.sublayer_of(layer, "self_attention")
        query, key, value = self.self_inputs(x)
        new = self.in_heads(attention, "key", key), self.in_heads(attention, "value", value)
        pair = self.extend_entry(cache, self.entry_of(number), new)
        return self.attend_heads(attention, self.in_heads(attention, "query", query), pair, mask)

    def entry_of(self, number: int) -> int:
        """Return the entry that the layer `number` keeps its keys and values in."""
        return number

    @abstractmethod
    def extend_entry(self, cache: Kept, number: int, new: Pair) -> Pair:
        """Keep new keys and values (B, H, N, E) in an entry, and return all that are in it."""

    def attend_memory(self, layer: Node, x: Tensor, cache: Cache, number: int) -> Tensor:
        """Let the new rows attend to the memory."""
        attention = self.sublayer_of(layer, "cross_attention")
        query = self.in_heads(attention, "query", x)
        pair = self.memory_of_step(layer, cache, number)
        return self.attend_heads(attention, query, pair, self.memory_mask_of_step(cache, x))

    def memory_of_step(self, layer: Node, cache: Cache, number: int) -> Pair:
        """Return the keys and values of the memory for the layer `number`."""
        return cache.memory[number]

    def attend_heads(self, attention: Node, query: Tensor, pair: Pair, mask: Mask) -> Tensor:
        """Attend with queries (B, H, N, E) to keys and values, and merge the heads."""
        key, value = pair
        if attention.how.choices != self.choices:  # the attention to the memory
            return self.without_own_causality().attend_heads(attention, query, pair, mask)
        query, key = self.place_heads(attention, query, key, None)
        seen = self.own_window(mask, *(self.merge_heads(one) for one in (query, key)))
        kept = self.head_mask(seen, query.shape[0], query.shape[2], key.shape[2])
        context, _ = self.attention(attention, query, key, value, kept)
        return self.project(attention, "output", self.merge_heads(context))

    def reorder_cache(self, module: Node, cache: Cache, origin: Tensor) -> Cache:
        """Return the cache whose row b goes on from the row `origin` (B,) of the given one."""
        return replace(
            cache,
            own=self.reorder_entries(cache.own, origin),
            tokens=self.reorder_tokens(cache.tokens, origin),
        )

    @abstractmethod
    def reorder_entries(self, own: list[Any], origin: Tensor) -> list[Any]:
        """Return the entries of the rows `origin` (B,)."""

    def reorder_tokens(self, tokens: Tensor, origin: Tensor) -> Tensor:
        """Return the target so far (B, L) of the rows `origin` (B,)."""
        return tokens[origin]
