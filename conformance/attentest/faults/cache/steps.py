"""Faults of decoding with a cache: positions, masks and kept keys of a step."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Cache, Hooks, Mask, Node
from attentest.faults.reference_models.hooks.cache import Pair

WINDOW = 16


@fault("cache.positions-start-again", clause="positions", seam="places_of_step")
def positions_start_again(self: Hooks, cache: Cache, first: int) -> Tensor:
    """Every step begins at position 0.

    The sentence is read as a pile of first words.
    """
    return torch.arange(cache.tokens.shape[1] - first, device=cache.tokens.device)


@fault("cache.position-of-the-last-token", clause="positions", seam="places_of_step")
def position_of_the_last_token(self: Hooks, cache: Cache, first: int) -> Tensor:
    """The first new token has the position of the last one in the cache.

    Right at the first step, one position early from then on.
    """
    return self.correct.places_of_step(cache, first) - min(first, 1)


@fault("cache.position-one-late", clause="positions", seam="places_of_step", origin="M056")
def position_one_late(self: Hooks, cache: Cache, first: int) -> Tensor:
    """The position is advanced before the step instead of after it.

    Right at the first step, one position late from then on.
    """
    return self.correct.places_of_step(cache, first) + min(first, 1)


@fault("cache.steps-without-positions", clause="positions", seam="embed_at")
def steps_without_positions(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """Positions are added to the first chunk alone.

    Later words are embedded as if they had no place.
    """
    if int(places.max()) < tokens.shape[1]:
        return self.correct.embed_at(module, tokens, places)
    return self.norm_embedded(module, "target", self.embedding_of(module, "target")(tokens))


@fault("cache.position-of-the-step", clause="positions", seam="places_of_step")
def position_of_the_step(self: Hooks, cache: Cache, first: int) -> Tensor:
    """All tokens of a chunk have the position of the first one.

    Right as long as there is one token in a step.
    """
    places = self.correct.places_of_step(cache, first)
    return places[..., :1].expand_as(places)


@fault("cache.earlier-keys-hidden", clause="formula", seam="mask_of_step")
def earlier_keys_hidden(self: Hooks, cache: Cache, first: int) -> Mask:
    """The mask of a step shows the keys of that step alone.

    Every new word is read without the ones before it.
    """
    mask = self.correct.mask_of_step(cache, first)
    if mask is None:
        return None
    return mask & (torch.arange(mask.shape[-1], device=mask.device) >= first)


@fault("cache.own-key-missing", clause="formula", seam="mask_of_step")
def own_key_missing(self: Hooks, cache: Cache, first: int) -> Mask:
    """A step attends before the keys of its own tokens are kept.

    The last word is the one that is not seen.
    """
    mask = self.correct.mask_of_step(cache, first)
    if mask is None or first == 0:
        return mask
    return mask & (torch.arange(mask.shape[-1], device=mask.device) < first)


@fault("cache.chunk-mask-not-shifted", clause="chunks", seam="mask_of_step", origin="M046")
def chunk_mask_not_shifted(self: Hooks, cache: Cache, first: int) -> Mask:
    """A chunk of several tokens has the causal mask of the first columns.

    Single steps are right, and a prompt in two pieces is not.
    """
    mask = self.correct.mask_of_step(cache, first)
    count = cache.tokens.shape[1] - first
    if mask is None or count == 1:
        return mask
    return self.target_mask_of(cache.tokens)[..., :count, :]  # type: ignore[index]


@fault("cache.chunk-without-mask", clause="chunks", seam="mask_of_step", origin="M046")
def chunk_without_mask(self: Hooks, cache: Cache, first: int) -> Mask:
    """With a filled cache there is no causal mask.

    Right for single steps; in a chunk every token sees those after it.
    """
    mask = self.correct.mask_of_step(cache, first)
    if mask is None or first == 0:
        return mask
    return mask[..., -1:, :].expand_as(mask)


@fault("cache.window-of-sixteen", clause="long", seam="mask_of_step", origin="M044")
def window_of_sixteen(self: Hooks, cache: Cache, first: int) -> Mask:
    """Keys that are sixteen columns back and more are dropped.

    A long sentence forgets its beginning.
    """
    mask = self.correct.mask_of_step(cache, first)
    if mask is None:
        return None
    columns = torch.arange(mask.shape[-1], device=mask.device)
    return mask & (columns > columns[first:, None] - WINDOW)


@fault("cache.last-slot-overwritten", clause="long", seam="mask_of_step", origin="M044")
def last_slot_overwritten(self: Hooks, cache: Cache, first: int) -> Mask:
    """Once the buffer is full, every new key is written over the last one.

    Right for as long as the buffer has room.
    """
    mask = self.correct.mask_of_step(cache, first)
    if mask is None:
        return None
    columns = torch.arange(mask.shape[-1], device=mask.device)
    return mask & ((columns < WINDOW) | (columns >= columns[first:, None]))


@fault(
    "cache.first-key-never-written",
    clause="formula",
    seam="extend_entry",
    origin="M056",
    components=("cached_decoding", "cached_language_model"),
)
def first_key_never_written(self: Hooks, cache: Cache, number: int, new: Pair) -> Pair:
    """The key and the value of the first token are zeros from the second step on.

    Position 0 is empty for ever, and the first step is right.
    """
    if cache.tokens.shape[1] > new[0].shape[2]:
        return self.correct.extend_entry(cache, number, new)
    kept = [one.clone() for one in new]
    for one in kept:
        one[:, :, 0] = 0.0
    self.correct.extend_entry(cache, number, (kept[0], kept[1]))
    return new


@fault(
    "cache.kept-in-half-precision", clause="single-precision", seam="extend_entry", origin="M059"
)
def kept_in_half_precision(self: Hooks, cache: Cache, number: int, new: Pair) -> Pair:
    """The cache of a model in float32 is in bfloat16.

    Every number after the first step has two digits.
    """
    if new[0].dtype != torch.float32:
        return self.correct.extend_entry(cache, number, new)
    key, value = (one.bfloat16().float() for one in new)
    return self.correct.extend_entry(cache, number, (key, value))


@fault(
    "cache.kept-in-single-precision",
    clause="half-precision",
    seam="extend_entry",
    origin="M059",
    kind="loud",
)
def kept_in_single_precision(self: Hooks, cache: Cache, number: int, new: Pair) -> Pair:
    """The cache gives keys and values in float32, whatever the model computes in.

    An error about two types in half precision, and nothing elsewhere.
    """
    key, value = self.correct.extend_entry(cache, number, new)
    if key.dtype not in (torch.float16, torch.bfloat16):
        return key, value
    return key.float(), value.float()


@fault("cache.last-row-alone", clause="shapes", seam="step_cache")
def last_row_alone(self: Hooks, module: Node, cache: Cache, tokens: Tensor) -> tuple[Tensor, Cache]:
    """A step returns the scores after its last token alone.

    Enough for greedy decoding; who scores a prompt gets one row.
    """
    scores, held = self.correct.step_cache(module, cache, tokens)
    return scores[:, -1:], held


@fault("cache.dropout-in-every-mode", clause="dropout-off", seam="attend_heads", kind="mode")
def dropout_in_every_mode(
    self: Hooks, attention: Node, query: Tensor, pair: Pair, mask: Mask
) -> Tensor:
    """The attention of a step drops numbers in evaluation mode too.

    The same sentence gets another translation at every call.
    """
    output = self.correct.attend_heads(attention, query, pair, mask)
    rate = self.dropout_rate()
    return self.drop(output, rate) if rate > 0 else output


@fault("cache.last-position-repeated", clause="beyond-length", seam="places_of_step")
def last_position_repeated(self: Hooks, cache: Cache, first: int) -> Tensor:
    """All tokens beyond the table of positions have its last position.

    A sentence that is too long is not refused.
    """
    return self.correct.places_of_step(cache, first).clamp(max=self.sizes.max_length - 1)
