"""Faults of decoder-only models with a cache: what is kept, and for whom."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node, TextCache
from attentest.faults.reference_models.hooks.cache import Pair

_PROMPTS: dict[bytes, Tensor] = {}
"""The embedded prompts of a fault that keeps them for all models."""


@fault(
    "language_model.cached-first-key-never-written",
    clause="cached-formula",
    seam="keep_new",
    origin="M056",
)
def cached_first_key_never_written(self: Hooks, cache: TextCache, number: int, new: Pair) -> Pair:
    """The key and the value of the first token are zeros from the second step on.

    Position 0 is empty for ever, and the first step is right.
    """
    if cache.tokens.shape[1] > new[0].shape[2]:
        return self.correct.keep_new(cache, number, new)
    kept = [one.clone() for one in new]
    for one in kept:
        one[:, :, 0] = 0.0
    self.correct.keep_new(cache, number, (kept[0], kept[1]))
    return new


@fault(
    "language_model.cached-layer-of-the-first",
    clause="cached-formula",
    seam="keep_new",
    origin="pkunlp-icler/FastV#49",
)
def cached_layer_of_the_first(self: Hooks, cache: TextCache, number: int, new: Pair) -> Pair:
    """All blocks read what the first one has kept of earlier tokens.

    Right for a model of one block.
    """
    key, value = self.correct.keep_new(cache, number, new)
    count = new[0].shape[2]
    if number == 0:
        self.memory["first"] = key, value
        return key, value
    first = self.memory["first"]
    return tuple(  # type: ignore[return-value]
        torch.cat([one[:, :, :-count], own], dim=2) for one, own in zip(first, new, strict=True)
    )


@fault(
    "language_model.cached-in-half-precision",
    clause="cached-single-precision",
    seam="keep_new",
    origin="M059",
)
def cached_in_half_precision(self: Hooks, cache: TextCache, number: int, new: Pair) -> Pair:
    """The cache of a model in float32 is in bfloat16.

    Every number after the first step has two digits.
    """
    if new[0].dtype != torch.float32:
        return self.correct.keep_new(cache, number, new)
    key, value = (one.bfloat16().float() for one in new)
    return self.correct.keep_new(cache, number, (key, value))


@fault(
    "language_model.cached-in-single-precision",
    clause="cached-half-precision",
    seam="keep_new",
    origin="M059",
    kind="loud",
)
def cached_in_single_precision(self: Hooks, cache: TextCache, number: int, new: Pair) -> Pair:
    """The cache gives keys and values in float32, whatever the model computes in.

    An error about two types in half precision, and nothing elsewhere.
    """
    key, value = self.correct.keep_new(cache, number, new)
    if key.dtype not in (torch.float16, torch.bfloat16):
        return key, value
    return key.float(), value.float()


@fault(
    "language_model.cached-reorder-forgotten",
    clause="cached-reorder",
    seam="reorder_kept",
    origin="B115",
)
def cached_reorder_forgotten(self: Hooks, own: list[Any], origin: Tensor) -> list[Any]:
    """Beams are reordered, and their keys and values are not.

    A beam goes on with the words of another one.
    """
    return self.copy_entries(own)


@fault(
    "language_model.cached-reorder-of-the-first-layer",
    clause="cached-reorder",
    seam="reorder_kept",
)
def cached_reorder_of_the_first_layer(self: Hooks, own: list[Any], origin: Tensor) -> list[Any]:
    """Only the keys and values of the first block are reordered.

    Right for a model of one block.
    """
    return [*self.correct.reorder_kept(own, origin)[:1], *self.copy_entries(own)[1:]]


@fault(
    "language_model.cached-values-of-the-keys",
    clause="cached-reorder",
    seam="reorder_kept",
    origin="huggingface/transformers#34232",
)
def cached_values_of_the_keys(self: Hooks, own: list[Any], origin: Tensor) -> list[Any]:
    """After rows were selected the kept values are the selected keys.

    Shapes fit, and every text that was moved reads its keys.
    """
    return [_keys_twice(one) for one in self.correct.reorder_kept(own, origin)]


def _keys_twice(one: Any) -> Any:
    """Return an entry with its keys in the place of its values."""
    if isinstance(one, tuple):
        return one[0], one[0].clone()
    return replace(one, room=torch.stack([one.room[0], one.room[0]]))


@fault(
    "language_model.cached-last-text-kept",
    clause="cached-reset",
    seam="text_to_change",
    kind="state",
    origin="deepspeedai/DeepSpeed PR#2669",
)
def cached_last_text_kept(self: Hooks, cache: TextCache) -> TextCache:
    """A text of as many rows as the last one goes on with its keys.

    The second prompt is answered with the words of the first in view.
    """
    last: TextCache = self.memory.get("last", cache)
    held = self.correct.text_to_change(cache)
    if not cache.tokens.shape[1] and len(last.tokens) == len(cache.tokens):
        own = self.copy_entries(last.own)
        held = replace(held, own=own, tokens=last.tokens, places=last.places)
    self.memory["last"] = held
    return held


@fault(
    "language_model.cached-counter-never-reset",
    clause="cached-reset",
    seam="places_of_text",
    kind="state",
    origin="Lightning-AI/litgpt PR#1596",
)
def cached_counter_never_reset(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """The first chunk of a text goes on at the position after the last text.

    The first prompt of a process is right; with positions that are added all others are not.
    """
    places = self.correct.places_of_text(cache, first, mask, positions)
    start: int = self.memory.get("next" if first == 0 else "start", 0)
    self.memory["start"] = start
    moved = (places + start) % self.sizes.max_length
    self.memory["next"] = int(moved.max()) + 1
    return moved


@fault(
    "language_model.cached-prompt-of-old-parameters",
    clause="cached-new-parameters",
    seam="embed_text",
    kind="state",
    origin="InternLM/lmdeploy#4917",
)
def cached_prompt_of_old_parameters(
    self: Hooks, module: Node, tokens: Tensor, places: Tensor
) -> Tensor:
    """The results for a prompt are kept when the weights change.

    Answers after an update mix two sets of weights.
    """
    kept = self.memory.setdefault("prompts", {})
    key = tokens.numpy().tobytes(), places.numpy().tobytes(), tokens.shape
    if key not in kept:
        kept[key] = self.correct.embed_text(module, tokens, places)
    found: Tensor = kept[key]
    return found


@fault(
    "language_model.cached-prompt-in-the-class",
    clause="cached-own-cache",
    seam="embed_text",
    kind="state",
    origin="sgl-project/sglang#26792",
)
def cached_prompt_in_the_class(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """The results for a prompt are kept under its tokens, for all models.

    Two models in one program read the prompt with the weights of one.
    """
    key = tokens.numpy().tobytes() + places.numpy().tobytes()
    if key not in _PROMPTS:
        if len(_PROMPTS) > 8:
            _PROMPTS.clear()
        _PROMPTS[key] = self.correct.embed_text(module, tokens, places)
    return _PROMPTS[key]


@fault(
    "language_model.cached-kept-in-the-module",
    clause="cached-sessions",
    seam="text_to_change",
    origin="quantumaikr/quant.cpp PR#49",
    kind="state",
)
def cached_kept_in_the_module(self: Hooks, cache: TextCache) -> TextCache:
    """Every step goes on with the last cache of the module.

    Two requests that take turns continue each other's texts.
    """
    last: TextCache = self.memory.get("last", cache)
    held = self.correct.text_to_change(last if cache.tokens.shape[1] else cache)
    self.memory["last"] = held
    return held


@fault(
    "language_model.cached-given-cache-changed",
    clause="cached-continued-twice",
    seam="text_to_change",
    kind="state",
    origin="MemTensor/MemOS PR#2303",
)
def cached_given_cache_changed(self: Hooks, cache: TextCache) -> TextCache:
    """A step writes into the cache that it is given, and declares that it does not.

    A prompt that is kept for later grows with every answer to it.
    """
    return cache


@fault("language_model.cached-last-row-alone", clause="cached-shapes", seam="step_text")
def cached_last_row_alone(
    self: Hooks,
    module: Node,
    cache: TextCache,
    tokens: Tensor,
    mask: Mask = None,
    positions: Tensor | None = None,
) -> tuple[Tensor, TextCache]:
    """A step returns the scores after its last token alone.

    Enough for greedy decoding; who scores a prompt gets one row.
    """
    scores, held = self.correct.step_text(module, cache, tokens, mask, positions)
    return scores[:, -1:], held


@fault(
    "language_model.cached-rows-of-the-first-text",
    clause="cached-batch",
    seam="keep_new",
)
def cached_rows_of_the_first_text(self: Hooks, cache: TextCache, number: int, new: Pair) -> Pair:
    """Steps after the first read the keys and values of the first row, for all rows.

    Every text of a batch goes on as the first one.
    """
    key, value = self.correct.keep_new(cache, number, new)
    if key.shape[2] == new[0].shape[2]:
        return key, value
    return key[:1].expand_as(key), value[:1].expand_as(value)


@fault(
    "language_model.cached-dropout-in-every-mode",
    clause="cached-dropout-off",
    seam="attend_kept",
    origin="meta-pytorch/torchtune PR#1803",
    kind="mode",
)
def cached_dropout_in_every_mode(
    self: Hooks, attention: Node, query: Tensor, pair: Pair, keep: Tensor
) -> Tensor:
    """The attention of a step drops numbers in evaluation mode too.

    The same prompt gets another answer at every call.
    """
    output = self.correct.attend_kept(attention, query, pair, keep)
    rate = self.dropout_rate()
    return self.drop(output, rate) if rate > 0 else output


@fault(
    "language_model.cached-never-used",
    clause="cached-rows-once",
    seam="step_text",
    origin="M050",
)
def cached_never_used(
    self: Hooks,
    module: Node,
    cache: TextCache,
    tokens: Tensor,
    mask: Mask = None,
    positions: Tensor | None = None,
) -> tuple[Tensor, TextCache]:
    """The cache is set to nothing, and every step computes the whole text.

    Correct, and as slow as decoding without a cache.
    """
    held = replace(cache, tokens=self.join_tokens(cache.tokens, tokens))
    first = cache.tokens.shape[1]
    new = self.places_of_text(held, first, mask, positions)
    held.places = torch.cat([cache.places, new.expand(len(tokens), -1)], dim=1)
    scores = self.language_model(module, held.tokens, mask, held.places)
    return scores[:, first:], held
