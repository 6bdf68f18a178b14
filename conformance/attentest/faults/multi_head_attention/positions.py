"""Faults in rotary positions inside attention, and in the alignment of queries and keys."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

TURNED = {"attention_rotary": "query-and-key", "rotary_pairs": "halves"}
CACHED = {**TURNED, "query_alignment": "end"}
CAUSAL_END = {"attention_causality": "built-in", "query_alignment": "end"}
CAUSAL_START = {"attention_causality": "built-in", "query_alignment": "start"}
Heads = tuple[Tensor, Tensor]
Given = Tensor | None


@fault(
    "multi_head_attention.keys-not-turned",
    "rotary",
    seam="turn_heads",
    origin="kvcache-ai/sglang PR#66",
    choices=TURNED,
)
def keys_not_turned(
    self: Hooks, module: Node, query: Tensor, key: Tensor, positions: Given
) -> Heads:
    """Queries are turned, and keys are not. Scores depend on the place of the query alone."""
    return self.correct.turn_heads(module, query, key, positions)[0], key


@fault("multi_head_attention.turned-twice", "rotary", seam="turn_heads", choices=TURNED)
def turned_twice(self: Hooks, module: Node, query: Tensor, key: Tensor, positions: Given) -> Heads:
    """Queries and keys are turned twice. All distances count double."""
    once = self.correct.turn_heads(module, query, key, positions)
    return self.correct.turn_heads(module, *once, positions)


@fault(
    "multi_head_attention.heads-as-positions",
    "rotary",
    seam="turn_heads",
    origin="M085",
    choices=TURNED,
)
def heads_as_positions(
    self: Hooks, module: Node, query: Tensor, key: Tensor, positions: Given
) -> Heads:
    """The axis of the heads is read as time. Each head has one angle, and the order is lost."""
    turned = self.correct.turn_heads(module, query.transpose(1, 2), key.transpose(1, 2), None)
    return turned[0].transpose(1, 2), turned[1].transpose(1, 2)


@fault(
    "multi_head_attention.pairs-of-keys-mixed",
    "rotary",
    seam="turn_heads",
    origin="M064",
    choices=TURNED,
)
def pairs_of_keys_mixed(
    self: Hooks, module: Node, query: Tensor, key: Tensor, positions: Given
) -> Heads:
    """Keys are turned in adjacent pairs, queries in halves. It trains, and fits no checkpoint."""
    order = torch.arange(key.shape[-1], device=key.device).view(2, -1).T.flatten()
    queries, mixed = self.correct.turn_heads(module, query, key[..., order.argsort()], positions)
    return queries, mixed[..., order]


@fault("multi_head_attention.rotary-undeclared", "rotary", seam="place_heads", origin="M079")
def rotary_undeclared(
    self: Hooks, module: Node, query: Tensor, key: Tensor, positions: Given
) -> Heads:
    """Queries and keys are turned, and that is not declared. Positions count twice in a model."""
    half = query.shape[-1] // 2

    def turned(x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[2], device=x.device, dtype=x.dtype)[:, None]
        a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        sines, cosines = angles.sin(), angles.cos()
        return torch.cat([a * cosines - b * sines, b * cosines + a * sines, rest], dim=-1)

    return turned(query), turned(key)


@fault(
    "multi_head_attention.rotary-missing",
    "rotary",
    seam="turn_heads",
    origin="M079",
    choices=TURNED,
)
def rotary_missing(
    self: Hooks, module: Node, query: Tensor, key: Tensor, positions: Given
) -> Heads:
    """Queries and keys are not turned in one branch of the code. The order is lost."""
    return query, key


@fault(
    "multi_head_attention.values-turned",
    "rotary",
    seam="share_heads",
    choices={**TURNED, "key_heads": "as-queries"},
)
def values_turned(self: Hooks, x: Tensor) -> Tensor:
    """Keys and values are turned together, once more after the keys. It trains."""
    angles = torch.arange(x.shape[2], device=x.device, dtype=x.dtype)[:, None]
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    turned = [a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()]
    return torch.cat(turned, dim=-1)


@fault(
    "multi_head_attention.one-row-of-positions",
    "rotary-positions",
    seam="places_of_tokens",
    origin="M146",
    choices=TURNED,
)
def one_row_of_positions(self: Hooks, length: int, positions: Given, x: Tensor) -> Tensor:
    """The positions of the first sequence are those of all. Padded prompts are garbage."""
    return self.correct.places_of_tokens(length, positions, x)[:1]


@fault(
    "multi_head_attention.given-positions-ignored",
    "rotary-positions",
    seam="places_of_tokens",
    origin="M149",
    choices=TURNED,
)
def given_positions_ignored(self: Hooks, length: int, positions: Given, x: Tensor) -> Tensor:
    """Positions that are given are not used. Packed documents run on."""
    return self.correct.places_of_tokens(length, None, x)


@fault(
    "multi_head_attention.first-position-and-on",
    "rotary-positions",
    seam="places_of_tokens",
    origin="M148",
    choices=TURNED,
)
def first_position_and_on(self: Hooks, length: int, positions: Given, x: Tensor) -> Tensor:
    """The first position of each sequence is used, and counted on. Gaps are closed."""
    found = self.correct.places_of_tokens(length, positions, x)
    return found[:, :1] + torch.arange(found.shape[1], device=x.device)


@fault(
    "multi_head_attention.angles-over-heads",
    "rotary-positions",
    seam="spread_turns",
    origin="M083",
    choices=TURNED,
    components=("multi_head_attention", "rotary"),
)
def angles_over_heads(self: Hooks, table: Tensor) -> Tensor:
    """The batch axis of the angles meets that of the heads where both are as long.

    Right for one row of positions, and silent for as many sequences as heads.
    """
    return table[None] if len(table) == self.sizes.heads else table[:, None]


@fault(
    "multi_head_attention.positions-relative-to-the-first",
    "distance-alone",
    seam="turn_frequencies",
    origin="M094",
    choices=TURNED,
    components=("multi_head_attention", "rotary"),
)
def positions_relative_to_the_first(
    self: Hooks, width: int, length: int, device: torch.device | None
) -> Tensor:
    """The frequencies depend on the greatest position. Cached keys have other angles."""
    return self.correct.turn_frequencies(width, length, device) * (1.0 + 0.01 * length)


@fault(
    "multi_head_attention.key-positions-doubled",
    "distance-alone",
    seam="turn_heads",
    origin="NeuraLegion/shainet PR#110",
    choices=TURNED,
)
def key_positions_doubled(
    self: Hooks, module: Node, query: Tensor, key: Tensor, positions: Given
) -> Heads:
    """Keys are turned twice, once more when they are read from a cache. Distances are wrong."""
    queries, once = self.correct.turn_heads(module, query, key, positions)
    return queries, self.correct.turn_heads(module, query, once, positions)[1]


@fault(
    "multi_head_attention.values-turned-too",
    "rotary",
    seam="project",
    origin="lucidrains/x-transformers#182",
    choices=TURNED,
)
def values_turned_too(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Values are turned as queries and keys are. Outputs depend on where a text begins."""
    found = self.correct.project(module, name, x)
    if name != "value":
        return found
    heads = self.split_heads(found)
    return self.merge_heads(self.correct.turn_heads(module, heads, heads, None)[0])


@fault(
    "multi_head_attention.second-halves-crossed",
    "rotary",
    seam="turn_heads",
    origin="hpcaitech/ColossalAI PR#6429",
    choices={**TURNED, "key_heads": "as-queries"},
)
def second_halves_crossed(
    self: Hooks, module: Node, query: Tensor, key: Tensor, positions: Given
) -> Heads:
    """A fused rotation writes the second half of keys into queries, the first of queries into keys.

    Where both are one text, all scores are those of a vector with itself.
    """
    queries, keys = self.correct.turn_heads(module, query, key, positions)
    if queries.shape != keys.shape:
        return queries, keys
    half = queries.shape[-1] // 2
    crossed = torch.cat([queries[..., :half], keys[..., half:]], dim=-1)
    return crossed, crossed


@fault(
    "multi_head_attention.cached-query-at-zero",
    "query-alignment",
    seam="turn_heads",
    origin="RobertCsordas/moeut PR#6",
    choices=CACHED,
)
def cached_query_at_zero(
    self: Hooks, module: Node, query: Tensor, key: Tensor, positions: Given
) -> Heads:
    """Queries begin at position 0, whatever is in the cache. The first step alone is right."""
    own = self.correct.turn_heads(module, query, key[:, :, : query.shape[2]], None)[0]
    return own, self.correct.turn_heads(module, query, key, positions)[1]


@fault(
    "multi_head_attention.causality-from-the-start",
    "query-alignment",
    seam="earlier",
    origin="M136",
    choices=CAUSAL_END,
)
def causality_from_the_start(self: Hooks, queries: int, keys: int, device: torch.device) -> Tensor:
    """Causality is aligned at the first key. A step with a cache sees key 0 alone."""
    ones = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return ones.tril()[None, None]


@fault(
    "multi_head_attention.causality-from-the-end",
    "query-alignment",
    seam="earlier",
    origin="M139",
    choices=CAUSAL_START,
)
def causality_from_the_end(self: Hooks, queries: int, keys: int, device: torch.device) -> Tensor:
    """Causality is aligned at the last key, where the first is meant. Later keys are seen."""
    ones = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return ones.tril(diagonal=max(keys - queries, 0))[None, None]


@fault(
    "multi_head_attention.causality-off-with-a-cache",
    "query-alignment",
    seam="earlier",
    origin="M140",
    choices=CAUSAL_END,
)
def causality_off_with_a_cache(
    self: Hooks, queries: int, keys: int, device: torch.device
) -> Tensor:
    """Causality is switched off where there are more keys than queries.

    Right for one new token; a chunk of several reads its own future.
    """
    if queries == keys:
        return self.correct.earlier(queries, keys, device)
    return torch.ones(1, 1, queries, keys, dtype=torch.bool, device=device)
