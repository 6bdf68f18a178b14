"""The hooks of a decoder-only model with kept keys and values."""

import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.attention import Mask
from attentest.faults.reference_models.hooks.cache import CacheHooks, Kept, Pair
from attentest.faults.reference_models.hooks.language_model import LanguageModelHooks
from attentest.faults.reference_models.modules import Node


@dataclass
class TextCache(Kept):
    """The state between two steps: `places` (B, L) are the positions of the tokens so far."""

    places: Tensor


class CachedTextHooks(CacheHooks, LanguageModelHooks):
    """Start, step and reorder; a step computes the rows of new tokens alone."""

    def start_text(self, module: Node, rows: int) -> TextCache:
        """Return a cache of `rows` texts without tokens."""
        like = next(module.parameters()).new_zeros(rows, 0, self.sizes.d_model)
        none = torch.zeros(rows, 0, dtype=torch.long, device=like.device)
        count = len(list(self.causal_layers(module)))
        return TextCache(own=self.empty_entries(count, like), tokens=none, places=none)

    def step_text(
        self,
        module: Node,
        cache: TextCache,
        tokens: Tensor,
        mask: Mask = None,
        positions: Tensor | None = None,
    ) -> tuple[Tensor, TextCache]:
        """Return the scores (B, N, V) of new tokens (B, N), and the cache with them.

        `mask` (B, L) is that of all tokens so far, and `positions` (B, N) those of the new ones.
        """
        held = self.text_to_change(cache)
        first = self.text_length(held)
        held.tokens = self.join_tokens(held.tokens, tokens)
        new = self.places_of_text(held, first, mask, positions)
        held.places = torch.cat([held.places, new.expand(len(tokens), -1)], dim=1)
        x = self.embed_text(module, tokens, new)
        keep = self.keys_of_text(held, first, mask)
        for number, layer in enumerate(self.causal_layers(module)):
            attended = self.cached_branch(layer, x, held, number, keep)
            x = self.join_branches(layer, x, attended)
        return self.finish_language_model(module, x), held

    def text_to_change(self, cache: TextCache) -> TextCache:
        """Return the cache that a step writes into: a copy, or the given one, as chosen."""
        if self.choices.cache_update == "in-place":
            return cache
        return replace(cache, own=self.copy_entries(cache.own))

    def text_length(self, cache: TextCache) -> int:
        """Return the number of tokens in the cache."""
        return int(cache.tokens.shape[1])

    def places_of_text(
        self, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
    ) -> Tensor:
        """Return the positions (B, N) of the tokens from the column `first` on."""
        if positions is not None:
            return positions
        return self.default_places(cache.tokens, mask)[:, first:]

    def embed_text(self, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
        """Return new tokens (B, N) embedded, at their positions."""
        return self.embed_tokens(module, tokens, places)

    def keys_of_text(self, cache: TextCache, first: int, mask: Mask) -> Tensor:
        """Return the keys (B, 1, N, L) that the new queries see, without the window."""
        keep = self.visible_keys(cache.tokens.shape[1], mask, cache.tokens.device)
        return self.limit_documents(keep, cache.places)[..., first:, :]

    def cached_branch(
        self, module: Node, x: Tensor, cache: TextCache, number: int, keep: Tensor
    ) -> Tensor:
        """Return what attention to all kept keys adds to the rows x (B, N, D) of new tokens."""
        opened = self.open_branch(module, "self_attention", x)
        found = self.attend_text(module.self_attention, opened, cache, number, keep)
        return self.end_branch(module, "self_attention", found)

    def attend_text(
        self, attention: Node, x: Tensor, cache: TextCache, number: int, keep: Tensor
    ) -> Tensor:
        """Let the new rows attend to all, after their keys and values are kept."""
        query, key, value = (self.in_heads(attention, one, x) for one in ("query", "key", "value"))
        query, key = self.place_heads(attention, query, key, self.places_to_turn(cache, x))
        pair = self.spread_kept(self.keep_new(cache, number, (key, value)))
        return self.attend_kept(attention, query, pair, keep)

    def keep_new(self, cache: TextCache, number: int, new: Pair) -> Pair:
        """Keep new keys and values (B, G, N, E) of a block, and return all that it has."""
        return self.extend_entry(cache, number, new)

    def places_to_turn(self, cache: TextCache, x: Tensor) -> Tensor:
        """Return the positions (B, N) that the new queries and keys are turned by."""
        return cache.places[:, cache.places.shape[1] - x.shape[1] :]

    def spread_kept(self, pair: Pair) -> Pair:
        """Return keys and values (B, H, L, E) of every query head, of those that are kept."""
        key, value = pair
        return self.share_heads(key), self.share_heads(value)

    def attend_kept(self, attention: Node, query: Tensor, pair: Pair, keep: Tensor) -> Tensor:
        """Attend with new queries (B, H, N, E) to all keys and values, and merge the heads."""
        key, value = pair
        near = self.near_kept(keep, query, key)
        kept = self.head_mask(near, query.shape[0], query.shape[2], key.shape[2])
        last = self.with_queries_at_the_end()
        context, _ = last.attention(attention, query, key, value, kept)
        return self.project(attention, "output", self.merge_heads(context))

    def near_kept(self, keep: Tensor, query: Tensor, key: Tensor) -> Mask:
        """Return the visible keys (B, 1, N, L) without those outside of the window."""
        last = self.with_queries_at_the_end()
        return last.own_window(keep, query.transpose(1, 2), key.transpose(1, 2))

    def with_queries_at_the_end(self) -> Self:
        """Return the hooks for queries that are those of the last keys."""
        other = copy.copy(self)
        other.choices = self.choices.but(query_alignment="end")
        return other

    def reorder_text(self, module: Node, cache: TextCache, origin: Tensor) -> TextCache:
        """Return the cache whose row b goes on from the row `origin` (B,) of the given one."""
        return replace(
            cache,
            own=self.reorder_kept(cache.own, origin),
            tokens=self.reorder_tokens(cache.tokens, origin),
            places=self.reorder_tokens(cache.places, origin),
        )

    def reorder_kept(self, own: list[Any], origin: Tensor) -> list[Any]:
        """Return the entries of the rows `origin` (B,)."""
        return self.reorder_entries(own, origin)
