"""Decoding with the cache of keys and values that the library's `generate` uses."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache

from attentest_marian.model import read
from attentest_spec import Table
from attentest_spec.torch import Recipe, cached_decoding


@dataclass(frozen=True)
class State:
    """The source with its memory, the target tokens that are no padding, and the library's cache.

    The cache is changed in place.
    """

    memory: Tensor
    keep_source: Tensor
    keep: Tensor
    cache: Any


def start(built: Any, source: Tensor) -> State:
    """Return a state without target tokens for sources (B, S)."""
    cache = EncoderDecoderCache(
        DynamicCache(config=built.config), DynamicCache(config=built.config)
    )
    keep = source.new_zeros(len(source), 0, dtype=torch.bool)
    return State(read(built, source), source != built.pad_ids[0], keep, cache)


def step(built: Any, state: State, tokens: Tensor) -> tuple[Tensor, State]:
    """Return the logits (B, N, V) after new tokens (B, N), and the state with these."""
    keep = torch.cat([state.keep, tokens != built.pad_ids[1]], dim=1)
    logits = built(
        attention_mask=state.keep_source,
        decoder_input_ids=tokens,
        decoder_attention_mask=keep,
        encoder_outputs=(state.memory,),
        past_key_values=state.cache,
        use_cache=True,
    ).logits
    return logits, replace(state, keep=keep)


def reorder(built: Any, state: State, rows: Tensor) -> State:
    """Return the state whose row b is the row `rows[b]` of the given one, as a beam search does."""
    state.cache.reorder_cache(rows)
    return State(state.memory[rows], state.keep_source[rows], state.keep[rows], state.cache)


def recipe(build: Any, parameters: Table) -> Recipe:
    """Return the recipe of decoding with the cache, for models that `build` returns."""
    return cached_decoding(build, start=start, step=step, reorder=reorder, parameters=parameters)
