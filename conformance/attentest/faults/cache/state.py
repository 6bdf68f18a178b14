"""Faults of decoding with a cache: what outlives a decoding, and what is computed again."""

from dataclasses import replace
from typing import Any

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Cache, Hooks, Node
from attentest.faults.reference_models.hooks.cache import Pair

_SHARED: dict[bytes, Tensor] = {}
"""The memories of a fault that keeps them for all models."""


@fault("cache.last-sentence-kept", clause="reset", seam="cache_to_change", kind="state")
def last_sentence_kept(self: Hooks, cache: Cache) -> Cache:
    """A decoding of as many rows as the last one goes on with its keys.

    The second batch is translated with the words of the first in view.
    """
    last: Cache = self.memory.get("last", cache)
    held = self.correct.cache_to_change(cache)
    if not cache.tokens.shape[1] and len(last.tokens) == len(cache.tokens):
        held = replace(held, own=self.copy_entries(last.own), tokens=last.tokens)
    self.memory["last"] = held
    return held


@fault("cache.memory-kept-by-shape", clause="reset", seam="memory_to_cache", kind="state")
def memory_kept_by_shape(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """The memory is encoded again only when the source has another shape.

    The second of two sentences of one length gets the translation of the first.
    """
    before = self.memory.get("memory")
    if before is None or before.shape[:2] != source.shape:
        before = self.memory["memory"] = self.correct.memory_to_cache(module, source)
    found: Tensor = before
    return found


@fault("cache.memory-never-reset", clause="reset", seam="memory_pair", origin="M052", kind="state")
def memory_never_reset(self: Hooks, layer: Node, memory: Tensor) -> Pair:
    """The keys and values of the memory are kept from the first decoding of as many rows.

    A source that is encoded again is not looked at.
    """
    kept = self.memory.setdefault("pairs", {})
    found: Pair = kept.setdefault((id(layer), len(memory)), self.correct.memory_pair(layer, memory))
    return found


@fault(
    "cache.memory-of-old-parameters", clause="new-parameters", seam="memory_to_cache", kind="state"
)
def memory_of_old_parameters(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """The memory of a source is kept in the module when its weights change.

    Evaluation between two epochs decodes from the encoder of the first.
    """
    kept = self.memory.setdefault("memories", {})
    key = source.numpy().tobytes(), source.shape
    if key not in kept:
        kept[key] = self.correct.memory_to_cache(module, source)
    found: Tensor = kept[key]
    return found


@fault("cache.memory-in-the-class", clause="own-cache", seam="memory_to_cache", kind="state")
def memory_in_the_class(self: Hooks, module: Node, source: Tensor) -> Tensor:
    """The last memory is kept for all models of the class.

    Two models in one program translate with the encoder of the first.
    """
    key = source.numpy().tobytes()
    if key not in _SHARED:
        _SHARED.clear()
        _SHARED[key] = self.correct.memory_to_cache(module, source)
    return _SHARED[key]


@fault("cache.kept-in-the-module", clause="sessions", seam="cache_to_change", kind="state")
def kept_in_the_module(self: Hooks, cache: Cache) -> Cache:
    """Every step goes on with the last cache of the module.

    Two requests that take turns continue each other's sentences.
    """
    last: Cache = self.memory.get("last", cache)
    held = self.correct.cache_to_change(last if cache.tokens.shape[1] else cache)
    self.memory["last"] = held
    return held


@fault("cache.given-cache-changed", clause="continued-twice", seam="cache_to_change", kind="state")
def given_cache_changed(self: Hooks, cache: Cache) -> Cache:
    """A step writes into the cache that it is given, and declares that it does not.

    Two continuations of one prefix find each other's words.
    """
    return cache


@fault(
    "cache.buffers-shared",
    clause="continued-twice",
    seam="copy_entries",
    models=("fused",),
    kind="state",
    components=("cached_decoding", "cached_language_model"),
)
def buffers_shared(self: Hooks, own: list[Any]) -> list[Any]:
    """The list of buffers is copied, and the buffers are not.

    The second continuation of a prefix overwrites the keys of the first.
    """
    return list(own)


@fault("cache.memory-projected-again", clause="memory-once", seam="memory_of_step", origin="M052")
def memory_projected_again(self: Hooks, layer: Node, cache: Cache, number: int) -> Pair:
    """The keys and values of the memory are computed in every step.

    Correct, and slower the longer the source is.
    """
    return self.memory_pair(layer, cache.rows)


@fault("cache.source-encoded-again", clause="memory-once", seam="step_cache", origin="M050")
def source_encoded_again(
    self: Hooks, module: Node, cache: Cache, tokens: Tensor
) -> tuple[Tensor, Cache]:
    """Every step encodes the source again.

    Correct, and the encoder runs as often as there are words.
    """
    fresh = self.start_cache(module, cache.source)
    return self.correct.step_cache(module, replace(cache, memory=fresh.memory), tokens)


@fault("cache.never-used", clause="rows-once", seam="step_cache", origin="M049")
def never_used(self: Hooks, module: Node, cache: Cache, tokens: Tensor) -> tuple[Tensor, Cache]:
    """The cache is passed on and not used: every step decodes the whole prefix.

    Correct, and as slow as decoding without a cache.
    """
    held = replace(cache, tokens=self.join_tokens(cache.tokens, tokens))
    scores = self.decode(module, held.tokens, cache.rows, cache.source)
    return scores[:, -tokens.shape[1] :], held
