"""Faults of decoder-only models with a cache: which keys the new tokens see."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, TextCache
from attentest.faults.reference_models.hooks.cache import Pair
from attentest.faults.reference_models.modules import Node

WINDOWED = {"attention_window": "with-query"}
FEWER = {"key_heads": "fewer"}
SIXTEEN = 16


def _columns(keep: Tensor) -> Tensor:
    """Return the numbers (L) of the keys."""
    return torch.arange(keep.shape[-1], device=keep.device)


@fault(
    "language_model.cached-mask-of-the-first-columns",
    clause="cached-formula",
    seam="keys_of_text",
    origin="M136",
)
def cached_mask_of_the_first_columns(
    self: Hooks, cache: TextCache, first: int, mask: Mask
) -> Tensor:
    """The causal mask of a step is the triangle of the first columns.

    With a filled cache the only new token sees the first key alone.
    """
    count = cache.tokens.shape[1] - first
    return self.correct.keys_of_text(cache, 0, mask)[..., :count, :]


@fault(
    "language_model.cached-causal-flag-in-a-step",
    clause="cached-formula",
    seam="keys_of_text",
    origin="M140",
)
def cached_causal_flag_in_a_step(self: Hooks, cache: TextCache, first: int, mask: Mask) -> Tensor:
    """The causal flag of a fused kernel stays on in steps of a single token.

    Prompts and chunks are right, and every single token sees the first key alone.
    """
    if cache.tokens.shape[1] - first > 1:
        return self.correct.keys_of_text(cache, first, mask)
    return self.correct.keys_of_text(cache, 0, mask)[..., :1, :]


@fault(
    "language_model.cached-own-key-missing",
    clause="cached-formula",
    seam="keys_of_text",
    origin="B121",
)
def cached_own_key_missing(self: Hooks, cache: TextCache, first: int, mask: Mask) -> Tensor:
    """A step attends to the cache as it was before its own keys were added.

    The last token is the one that is not seen.
    """
    keep = self.correct.keys_of_text(cache, first, mask)
    return keep & (_columns(keep) < first) if first else keep


@fault(
    "language_model.cached-history-hidden",
    clause="cached-chunks",
    seam="keys_of_text",
    origin="hyprstream/hyprstream PR#1521",
)
def cached_history_hidden(self: Hooks, cache: TextCache, first: int, mask: Mask) -> Tensor:
    """The mask of several tokens after a cache is the triangle of the first columns.

    Single steps are right; a prompt in two pieces loses the first one.
    """
    count = cache.tokens.shape[1] - first
    if count == 1:
        return self.correct.keys_of_text(cache, first, mask)
    return self.correct.keys_of_text(cache, 0, mask)[..., :count, :]


@fault(
    "language_model.cached-prompt-without-mask",
    clause="cached-chunks",
    seam="keys_of_text",
    origin="Mikyx-1/TinyLLM#17",
)
def cached_prompt_without_mask(self: Hooks, cache: TextCache, first: int, mask: Mask) -> Tensor:
    """With a cache there is no causal mask, as a single token needs none.

    The tokens of a prompt see those after them, and training never shows it.
    """
    keep = self.correct.keys_of_text(cache, first, mask)
    return keep[..., -1:, :].expand_as(keep)


@fault(
    "language_model.cached-left-padding-visible",
    clause="cached-left-padding",
    seam="keys_of_text",
    origin="OpenNMT/OpenNMT-py PR#2532",
)
def cached_left_padding_visible(self: Hooks, cache: TextCache, first: int, mask: Mask) -> Tensor:
    """Padding is hidden in the first step alone.

    Every new word of a short prompt attends to the padding in front of it.
    """
    return self.correct.keys_of_text(cache, first, mask if first == 0 else None)


@fault(
    "language_model.cached-mask-cut-to-the-step",
    clause="cached-left-padding",
    seam="keys_of_text",
    origin="thu-nics/C2C PR#19",
)
def cached_mask_cut_to_the_step(self: Hooks, cache: TextCache, first: int, mask: Mask) -> Tensor:
    """The mask of all tokens is cut to the columns of the new ones.

    The first step is right, and the later ones take the padding of the prompt for words.
    """
    if mask is None or first == 0:
        return self.correct.keys_of_text(cache, first, mask)
    cut = mask.clone()
    cut[:, :first] = True
    return self.correct.keys_of_text(cache, first, cut)


@fault(
    "language_model.cached-padding-of-the-first-row",
    clause="cached-left-padding",
    seam="keys_of_text",
)
def cached_padding_of_the_first_row(
    self: Hooks, cache: TextCache, first: int, mask: Mask
) -> Tensor:
    """The padding of the first row is that of all rows.

    The longest prompt of a batch is right, and shorter ones are not.
    """
    shared = None if mask is None else mask[:1].expand_as(mask)
    return self.correct.keys_of_text(cache, first, shared)


@fault(
    "language_model.cached-prompt-padding-visible",
    clause="cached-prompt-padding",
    seam="keys_of_text",
    origin="ml-explore/mlx-lm#1906",
)
def cached_prompt_padding_visible(self: Hooks, cache: TextCache, first: int, mask: Mask) -> Tensor:
    """Steps of a single token have no mask.

    The padding of a prompt is read like a word by all tokens that follow.
    """
    several = cache.tokens.shape[1] - first > 1
    return self.correct.keys_of_text(cache, first, mask if several else None)


@fault(
    "language_model.cached-window-in-the-prompt-alone",
    clause="cached-window",
    seam="near_kept",
    choices=WINDOWED,
    origin="goombalab/hnet#20",
)
def cached_window_in_the_prompt_alone(
    self: Hooks, keep: Tensor, query: Tensor, key: Tensor
) -> Mask:
    """Steps after the first have no window.

    Equal to the model until the text is longer than the window.
    """
    if query.shape[2] == key.shape[2]:
        return self.correct.near_kept(keep, query, key)
    return keep


@fault(
    "language_model.cached-window-without-the-query",
    clause="cached-window",
    seam="near_kept",
    choices=WINDOWED,
    origin="M124",
)
def cached_window_without_the_query(self: Hooks, keep: Tensor, query: Tensor, key: Tensor) -> Mask:
    """In single steps the window counts the earlier tokens, without the query's own.

    One key too many in every step, and in no prompt.
    """
    if query.shape[2] > 1:
        return self.correct.near_kept(keep, query, key)
    return keep & (_columns(keep) >= keep.shape[-1] - 1 - self.sizes.window)


@fault(
    "language_model.cached-window-turned-early",
    clause="cached-window",
    seam="near_kept",
    choices=WINDOWED,
    origin="M044",
)
def cached_window_turned_early(self: Hooks, keep: Tensor, query: Tensor, key: Tensor) -> Mask:
    """A ring of keys drops the oldest one a step early, when it has just been filled.

    Right up to the window; from then on one key is missing.
    """
    near = self.correct.near_kept(keep, query, key)
    if near is None or query.shape[2] > 1 or key.shape[2] < self.sizes.window:
        return near
    return near & (_columns(keep) > keep.shape[-1] - self.sizes.window)


@fault(
    "language_model.cached-window-of-the-first-columns",
    clause="cached-window",
    seam="near_kept",
    choices=WINDOWED,
    origin="M127",
)
def cached_window_of_the_first_columns(
    self: Hooks, keep: Tensor, query: Tensor, key: Tensor
) -> Mask:
    """The window of a single step is symmetric about its column among the new ones.

    The step sees the first keys of the text, and later none of them.
    """
    if query.shape[2] > 1 or key.shape[2] == 1:
        return self.correct.near_kept(keep, query, key)
    columns = _columns(keep)
    return keep & ((columns < self.sizes.window) | (columns == keep.shape[-1] - 1))


@fault(
    "language_model.cached-chunk-overflows-the-ring",
    clause="cached-window",
    seam="near_kept",
    choices=WINDOWED,
    origin="pytorch/executorch PR#20346",
)
def cached_chunk_overflows_the_ring(self: Hooks, keep: Tensor, query: Tensor, key: Tensor) -> Mask:
    """A chunk after a cache is written into the ring before its first tokens have read it.

    Right for single tokens; the first tokens of a long chunk lose the end of the last one.
    """
    near = self.correct.near_kept(keep, query, key)
    first = key.shape[2] - query.shape[2]
    if near is None or first == 0 or query.shape[2] == 1:
        return near
    return near & (_columns(keep) >= key.shape[2] - self.sizes.window)


@fault(
    "language_model.cached-buffer-overwritten",
    clause="cached-long",
    seam="near_kept",
    origin="M044",
)
def cached_buffer_overwritten(self: Hooks, keep: Tensor, query: Tensor, key: Tensor) -> Mask:
    """Once a buffer of sixteen tokens is full, every new key is written over the last one.

    Right for as long as the buffer has room.
    """
    near = self.correct.near_kept(keep, query, key)
    columns = _columns(keep)
    own = columns[-query.shape[2] :, None]
    seen = (columns < SIXTEEN) | (columns >= own)
    return seen[None, None] if near is None else near & seen


@fault(
    "language_model.cached-window-of-sixteen",
    clause="cached-long",
    seam="near_kept",
)
def cached_window_of_sixteen(self: Hooks, keep: Tensor, query: Tensor, key: Tensor) -> Mask:
    """Keys that are sixteen columns back and more are dropped.

    A long text forgets its beginning.
    """
    near = self.correct.near_kept(keep, query, key)
    columns = _columns(keep)
    seen = columns > columns[-query.shape[2] :, None] - SIXTEEN
    return seen[None, None] if near is None else near & seen


@fault(
    "language_model.cached-empty-slots-seen",
    clause="cached-formula",
    seam="attend_kept",
    origin="huggingface/transformers PR#45940",
)
def cached_empty_slots_seen(
    self: Hooks, attention: Node, query: Tensor, pair: Pair, keep: Tensor
) -> Tensor:
    """A step attends to the slots of a buffer that have not been written yet.

    Zeros take a part of every weight, the more so the shorter the text is.
    """
    key, value = (torch.cat([one, torch.zeros_like(one[:, :, :1])], dim=2) for one in pair)
    near = self.near_kept(keep, query, pair[0])
    seen = keep if near is None else near
    seen = torch.cat([seen, torch.ones_like(seen[..., :1])], dim=-1)
    kept = self.head_mask(seen, query.shape[0], query.shape[2], key.shape[2])
    context, _ = self.with_queries_at_the_end().attention(attention, query, key, value, kept)
    return self.project(attention, "output", self.merge_heads(context))


@fault(
    "language_model.cached-heads-tiled",
    clause="cached-key-heads",
    seam="spread_kept",
    choices=FEWER,
    origin="onnx/onnx PR#7274",
)
def cached_heads_tiled(self: Hooks, pair: Pair) -> Pair:
    """Kept heads are repeated one after the other, and not each several times in a row.

    Right for the text without a cache, and for a single head of keys.
    """
    key, value = pair
    times = self.sizes.heads // key.shape[1]
    return key.repeat(1, times, 1, 1), value.repeat(1, times, 1, 1)


@fault(
    "language_model.cached-first-head-for-all",
    clause="cached-key-heads",
    seam="spread_kept",
    choices=FEWER,
    origin="M104",
)
def cached_first_head_for_all(self: Hooks, pair: Pair) -> Pair:
    """The first of the kept heads is broadcast to all heads of queries.

    Right where there is one head of keys.
    """
    key, value = (one[:, :1].expand(-1, self.sizes.heads, -1, -1) for one in pair)
    return key, value


@fault(
    "language_model.cached-as-query-heads",
    clause="cached-key-heads",
    seam="spread_kept",
    choices=FEWER,
    origin="M058",
    kind="loud",
)
def cached_as_query_heads(self: Hooks, pair: Pair) -> Pair:
    """Kept keys are reshaped with the number of query heads.

    An error about shapes as soon as heads share keys.
    """
    key, value = pair
    shape = len(key), self.sizes.heads, *key.shape[2:]
    return key.reshape(shape), value.reshape(shape)


@fault(
    "language_model.cached-values-tiled",
    clause="cached-key-heads",
    seam="spread_kept",
    choices=FEWER,
)
def cached_values_tiled(self: Hooks, pair: Pair) -> Pair:
    """Kept values are repeated in another order than kept keys.

    Each head finds the right tokens and reads the values of another group.
    """
    _, value = pair
    times = self.sizes.heads // value.shape[1]
    return self.correct.spread_kept(pair)[0], value.repeat(1, times, 1, 1)
