"""Faults of decoding with a cache: padding, and the order of rows."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Cache, Hooks, Mask, Node
from attentest.faults.reference_models.hooks.cache import Pair


@fault("cache.prompt-padding-visible", clause="prompt-padding", seam="mask_of_step")
def prompt_padding_visible(self: Hooks, cache: Cache, first: int) -> Mask:
    """Steps after the first know nothing of padding in the prompt.

    Short prompts of a batch are read with the padding behind them.
    """
    if first == 0:
        return self.correct.mask_of_step(cache, first)
    tokens = cache.tokens
    return self.causal_mask(tokens.shape[1], tokens.device)[..., first:, :]


@fault("cache.padding-not-reordered", clause="prompt-padding", seam="reorder_tokens")
def padding_not_reordered(self: Hooks, tokens: Tensor, origin: Tensor) -> Tensor:
    """The mask of padding stays with the row when a beam is reordered.

    A hypothesis hides the words where another one had padding.
    """
    return tokens


@fault("cache.padding-of-the-first-row", clause="left-padding", seam="mask_of_step")
def padding_of_the_first_row(self: Hooks, cache: Cache, first: int) -> Mask:
    """The padding of the first row is that of all rows.

    The longest prompt of a batch is right, and shorter ones are not.
    """
    mask = self.correct.mask_of_step(cache, first)
    return None if mask is None else mask[:1].expand_as(mask)


@fault("cache.left-padding-visible", clause="left-padding", seam="mask_of_step", origin="M046")
def left_padding_visible(self: Hooks, cache: Cache, first: int) -> Mask:
    """Padding before the first token is hidden in the first chunk alone.

    A short prompt is right at its end, and every new word attends to its padding.
    """
    mask = self.correct.mask_of_step(cache, first)
    if mask is None or first == 0:
        return mask
    real = cache.tokens != self.sizes.target_pad
    before = (real.cumsum(dim=1) == 0)[:, None, None, :]
    return mask | before


@fault("cache.positions-of-real-tokens", clause="positions-of-padding", seam="places_of_step")
def positions_of_real_tokens(self: Hooks, cache: Cache, first: int) -> Tensor:
    """A token after padding has the number of real tokens before it, and columns are declared.

    Padded prompts differ from what was trained on, and unpadded ones are right.
    """
    counted = (cache.tokens != self.sizes.target_pad).cumsum(dim=1)
    return (counted - 1).clamp(min=0)[:, first:]


@fault(
    "cache.source-padding-in-later-steps",
    clause="source-padding",
    seam="memory_mask_of_step",
    origin="M053",
)
def source_padding_in_later_steps(self: Hooks, cache: Cache, x: Tensor) -> Mask:
    """Steps after the first have no mask of the memory.

    Other words for the same sentence, depending on how far it is padded.
    """
    later = cache.tokens.shape[1] > x.shape[1]
    return None if later else self.correct.memory_mask_of_step(cache, x)


@fault(
    "cache.source-padding-of-the-first-row",
    clause="source-padding",
    seam="memory_mask_of_step",
    origin="M053",
)
def source_padding_of_the_first_row(self: Hooks, cache: Cache, x: Tensor) -> Mask:
    """The mask of the memory is that of the first source of the batch.

    Longer sources lose words, and shorter ones get padding.
    """
    mask = self.correct.memory_mask_of_step(cache, x)
    return None if mask is None else mask[:1].expand_as(mask)


@fault("cache.memory-of-the-first-row", clause="batch", seam="memory_of_step")
def memory_of_the_first_row(self: Hooks, layer: Node, cache: Cache, number: int) -> Pair:
    """All rows attend to the memory of the first one.

    Every sentence of a batch is translated as the first.
    """
    key, value = self.correct.memory_of_step(layer, cache, number)
    return key[:1].expand_as(key), value[:1].expand_as(value)


@fault("cache.memory-of-the-first-layer", clause="formula", seam="memory_of_step")
def memory_of_the_first_layer(self: Hooks, layer: Node, cache: Cache, number: int) -> Pair:
    """All layers use the keys and values of the memory of the first one.

    Right for a model of one layer.
    """
    return cache.memory[0]


@fault("cache.memory-value-by-key-projection", clause="formula", seam="memory_pair")
def memory_value_by_key_projection(self: Hooks, layer: Node, memory: Tensor) -> Pair:
    """The kept values of the memory are computed with the projection of the keys.

    Shapes fit; what is read from the source is not what the model was trained on.
    """
    attention = self.sublayer_of(layer, "cross_attention")
    key = self.in_heads(attention, "key", memory)
    return key, key


@fault("cache.reorder-forgotten", clause="reorder", seam="reorder_entries")
def reorder_forgotten(self: Hooks, own: list[Any], origin: Tensor) -> list[Any]:
    """Beams are reordered, and their keys and values are not.

    A beam goes on with the words of another one.
    """
    return self.copy_entries(own)


@fault("cache.reorder-of-keys-alone", clause="reorder", seam="reorder_entries")
def reorder_of_keys_alone(self: Hooks, own: list[Any], origin: Tensor) -> list[Any]:
    """The keys are reordered, and the values are not.

    The right words are looked for, and others are read.
    """
    right = self.correct.reorder_entries(own, origin)
    return [_keys_of(one, other) for one, other in zip(right, own, strict=True)]


def _keys_of(one: Any, other: Any) -> Any:
    """Return the entry with the keys of `one` and the values of `other`."""
    if isinstance(one, tuple):
        return one[0], other[1]
    return replace(one, room=torch.stack([one.room[0], other.room[1]]))


@fault("cache.reorder-of-the-first-layer", clause="reorder", seam="reorder_entries")
def reorder_of_the_first_layer(self: Hooks, own: list[Any], origin: Tensor) -> list[Any]:
    """Only the first layer's keys and values are reordered.

    Right for a model of one layer.
    """
    return [*self.correct.reorder_entries(own, origin)[:1], *self.copy_entries(own)[1:]]


@fault("cache.reorder-row-by-row", clause="reorder", seam="reorder_entries")
def reorder_row_by_row(self: Hooks, own: list[Any], origin: Tensor) -> list[Any]:
    """Rows are copied one after the other into the buffer that they are read from.

    Right until a row is needed that has been overwritten.
    """
    rows = list(range(len(origin)))
    for place, row in enumerate(origin.tolist()):
        rows[place] = rows[row]
    return self.correct.reorder_entries(own, torch.tensor(rows, device=origin.device))


@fault("cache.reorder-backwards", clause="reorder", seam="reorder_entries")
def reorder_backwards(self: Hooks, own: list[Any], origin: Tensor) -> list[Any]:
    """Each row is moved to the place that it should come from.

    Right where two rows are exchanged.
    """
    return self.correct.reorder_entries(own, origin.argsort(stable=True))
