"""Faults of decoder-only models with a cache: the positions of new tokens."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node, TextCache

TURNED = {
    "attention_rotary": "query-and-key",
    "positional_encoding": "none",
    "head_width": "d/h",
}


@fault(
    "language_model.cached-positions-start-again",
    clause="cached-positions",
    seam="places_of_text",
    origin="B119",
)
def cached_positions_start_again(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """Every step begins at position 0.

    The first token is right, and the text drifts after it.
    """
    if positions is not None:
        return positions
    return self.column_places(cache.tokens[:, first:])


@fault(
    "language_model.cached-turns-start-again",
    clause="cached-positions",
    seam="places_to_turn",
    origin="lucidrains/rotary-embedding-torch#11",
    choices=TURNED,
)
def cached_turns_start_again(self: Hooks, cache: TextCache, x: Tensor) -> Tensor:
    """New queries and keys are turned by their numbers in the step.

    All distances to the cache are wrong, and the scores look sound.
    """
    return self.column_places(x[..., 0])


@fault(
    "language_model.cached-position-one-late",
    clause="cached-positions",
    seam="places_of_text",
    origin="M056",
)
def cached_position_one_late(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """The position is advanced before the step instead of after it.

    Right at the first step, one position late from then on.
    """
    return self.correct.places_of_text(cache, first, mask, positions) + min(first, 1)


@fault(
    "language_model.cached-position-of-the-last-token",
    clause="cached-positions",
    seam="places_of_text",
)
def cached_position_of_the_last_token(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """The first new token has the position of the last one in the cache.

    Right at the first step, one position early from then on.
    """
    return self.correct.places_of_text(cache, first, mask, positions) - min(first, 1)


@fault(
    "language_model.cached-position-of-the-step",
    clause="cached-positions",
    seam="places_of_text",
    origin="jundot/omlx PR#2363",
)
def cached_position_of_the_step(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """All tokens of a chunk after a cache have the position of the first one.

    Right as long as there is one token in a step.
    """
    places = self.correct.places_of_text(cache, first, mask, positions)
    return places[..., :1].expand_as(places) if first else places


@fault(
    "language_model.cached-offset-by-row",
    clause="cached-positions",
    seam="places_of_text",
    origin="M082",
    kind="loud",
)
def cached_offset_by_row(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """The offsets of all rows are added to the numbers of the step, along the same axis.

    One request is right, and a batch of several ends in an error about shapes.
    """
    if positions is not None or first == 0:
        return self.correct.places_of_text(cache, first, mask, positions)
    own = torch.arange(cache.tokens.shape[1] - first, device=cache.tokens.device)
    return (own + torch.full_like(cache.tokens[:, 0], first))[None]


@fault(
    "language_model.cached-one-counter",
    clause="cached-positions-given",
    seam="places_of_text",
    origin="M146",
    choices=TURNED,
)
def cached_one_counter(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """Steps after the first have the positions of the first row, for all rows.

    The longest prompt goes on correctly, and shorter ones do not.
    """
    places = self.correct.places_of_text(cache, first, mask, positions)
    return places[:1].expand_as(places) if first else places


@fault(
    "language_model.cached-positions-of-the-prompt-alone",
    clause="cached-positions-given",
    seam="places_of_text",
    origin="thu-nics/C2C PR#19",
)
def cached_positions_of_the_prompt_alone(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """Positions are used for the prompt, and dropped in the steps after it.

    New tokens jump to the numbers of their columns.
    """
    return self.correct.places_of_text(cache, first, mask, None if first else positions)


@fault(
    "language_model.cached-counter-not-reordered",
    clause="cached-positions-given",
    seam="reorder_text",
    origin="huggingface/transformers PR#48161",
    choices={"packed_documents": "by-positions"},
)
def cached_counter_not_reordered(
    self: Hooks, module: Node, cache: TextCache, origin: Tensor
) -> TextCache:
    """The positions that are kept with a cache stay with their row when rows are exchanged.

    A text goes on as another document, which sees nothing of its beginning.
    """
    held = self.correct.reorder_text(module, cache, origin)
    held.places = cache.places
    return held


@fault(
    "language_model.cached-columns-after-padding",
    clause="cached-padded-positions",
    seam="places_of_text",
    origin="M148",
    choices={"padded_positions": "real-tokens"},
)
def cached_columns_after_padding(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """The prompt counts real tokens, and the steps after it count columns.

    A gap as wide as the padding opens between a prompt and what follows.
    """
    if first == 0 or positions is not None:
        return self.correct.places_of_text(cache, first, mask, positions)
    return self.column_places(cache.tokens)[:, first:]


@fault(
    "language_model.cached-real-tokens-for-columns",
    clause="cached-padded-positions",
    seam="places_of_text",
)
def cached_real_tokens_for_columns(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """Steps count real tokens where columns are declared.

    Padded prompts go on at other positions than they were trained with.
    """
    if first == 0 or positions is not None or mask is None:
        return self.correct.places_of_text(cache, first, mask, positions)
    return self.counted_places(mask)[:, first:]


@fault(
    "language_model.cached-steps-without-rows",
    clause="cached-positions",
    seam="embed_text",
    origin="ml-explore/mlx-lm PR#93",
    choices={"positional_encoding": "learned", "attention_rotary": "none"},
)
def cached_steps_without_rows(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """Rows of positions are added to the first chunk alone.

    Later words are embedded as if they had no place.
    """
    if int(places.min()) == 0:
        return self.correct.embed_text(module, tokens, places)
    x: Tensor = module.embedding(tokens)
    return x


@fault(
    "language_model.cached-last-position-repeated",
    clause="cached-beyond-length",
    seam="places_of_text",
)
def cached_last_position_repeated(
    self: Hooks, cache: TextCache, first: int, mask: Mask, positions: Tensor | None
) -> Tensor:
    """All tokens beyond the table of positions have its last position.

    A text that is too long is not refused.
    """
    places = self.correct.places_of_text(cache, first, mask, positions)
    return places.clamp(max=self.sizes.max_length - 1)


@fault(
    "language_model.cached-without-distances",
    clause="cached-formula",
    seam="with_queries_at_the_end",
    origin="NVIDIA/TensorRT-LLM PR#13870",
    choices={"relative_bias": "alibi", "positional_encoding": "none"},
)
def cached_without_distances(self: Hooks) -> Hooks:
    """With a cache scores have no bias by distance. The prompt alone is read in order."""
    last = self.correct.with_queries_at_the_end()
    last.choices = last.choices.but(relative_bias="none")
    return last
