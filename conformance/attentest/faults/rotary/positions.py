"""Faults in the positions of tokens, given or not."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault(
    "rotary.counted-from-one",
    "first-position",
    seam="turn_default",
    origin="PrimeIntellect-ai/prime-rl PR#1545",
)
def counted_from_one(self: Hooks, x: Tensor) -> Tensor:
    """Positions are counted from 1. Scores are right, and caches and checkpoints do not fit."""
    return self.correct.turn_default(x) + 1


@fault("rotary.counted-from-the-end", "first-position", seam="turn_default")
def counted_from_the_end(self: Hooks, x: Tensor) -> Tensor:
    """Positions are counted from the end. Each new token changes those of all before it."""
    return self.correct.turn_default(x).flip(-1)


@fault("rotary.angles-slow-down", "distance-alone", seam="turn_angles")
def angles_slow_down(self: Hooks, places: Tensor, frequencies: Tensor) -> Tensor:
    """Angles grow with the root of the position. Scores depend on more than the distance."""
    return self.correct.turn_angles(places.sqrt(), frequencies)


@fault("rotary.positions-over-length", "distance-alone", seam="turn_default")
def positions_over_length(self: Hooks, x: Tensor) -> Tensor:
    """Positions before the middle are counted twice. One distance has several angles."""
    places = self.correct.turn_default(x)
    return places + (places > places.shape[-1] // 2)


@fault(
    "rotary.never-turned", "turns-with-position", seam="turn", origin="bytedance-iaas/vllm PR#59"
)
def never_turned(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Tables are made, and queries and keys are passed on as they were. There is no order."""
    return x


@fault("rotary.positions-by-twos", "turns-with-position", seam="turn_default")
def positions_by_twos(self: Hooks, x: Tensor) -> Tensor:
    """Two neighbours share a position. The order within a pair is lost."""
    return (self.correct.turn_default(x) / 2).floor()


@fault("rotary.row-of-the-last-position", "turns-with-position", seam="turn_default")
def row_of_the_last_position(self: Hooks, x: Tensor) -> Tensor:
    """The row of the last position is taken for all tokens. Scores do not depend on the order."""
    places = self.correct.turn_default(x)
    return places[:, -1:].expand_as(places)


@fault("rotary.head-for-position", "heads-alike", seam="turn", origin="M085")
def head_for_position(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """The table is indexed along the heads. The number of the head is taken for the position."""
    return _along(self, x, 1)


@fault("rotary.sequence-for-position", "heads-alike", seam="turn", origin="M085")
def sequence_for_position(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """The table is indexed along the batch. It counts sequences, not tokens."""
    return _along(self, x, 0)


def _along(self: Hooks, x: Tensor, axis: int) -> Tensor:
    """Return x turned by the numbers of another axis than that of the tokens."""
    moved = x.transpose(axis, 2)
    places = torch.arange(moved.shape[2], dtype=torch.float64, device=x.device)
    cosines, sines = self.turn_table(places, moved)
    return self.correct.turn(moved, cosines[None], sines[None]).transpose(axis, 2)


@fault("rotary.first-head-alone", "heads-alike", seam="turn")
def first_head_alone(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """The first head alone is turned. All others see no order."""
    return torch.cat((self.correct.turn(x[:, :1], cosines, sines), x[:, 1:]), dim=1)


@fault("rotary.positions-run-on", "sequences-independent", seam="turn_default")
def positions_run_on(self: Hooks, x: Tensor) -> Tensor:
    """Positions run on from one sequence of a batch to the next. A batch is not its sequences."""
    places = torch.arange(x.shape[0] * x.shape[2], dtype=torch.float64, device=x.device)
    return places.view(x.shape[0], -1)


@fault("rotary.distance-to-the-least", "sequences-independent", seam="turn_places")
def distance_to_the_least(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """Positions are counted from the least one in the batch. A batch is not its sequences."""
    places = self.correct.turn_places(x, positions)
    return places if positions is None else places - places.min()


@fault("rotary.positions-ignored", "positions-given", seam="turn_places", origin="M146")
def positions_ignored(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """Positions are accepted and not read. Padding on the left shifts all tokens."""
    return self.turn_default(x)


@fault(
    "rotary.positions-of-the-first-sequence", "positions-given", seam="turn_places", origin="M146"
)
def positions_of_the_first_sequence(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """The positions of the first sequence are used for all. Shorter prompts give garbage."""
    return self.correct.turn_places(x, positions)[:1]


@fault("rotary.table-meets-heads", "positions-given", seam="spread_turns", origin="M146")
def table_meets_heads(self: Hooks, table: Tensor) -> Tensor:
    """The axis of heads is missing in the table of each sequence.

    Where there are as many sequences as heads, each head gets the positions of a sequence.
    """
    if len(table) > 1 and len(table) == self.sizes.heads:
        return table[None]
    return self.correct.spread_turns(table)


@fault("rotary.first-position-and-on", "positions-restart", seam="turn_places", origin="M149")
def first_position_and_on(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """Only the first position is read, and the rest counted from it. Packed rows are wrong."""
    return self.correct.turn_places(x, positions)[:, :1] + self.correct.turn_default(x)


@fault("rotary.never-back-to-zero", "positions-restart", seam="turn_places", origin="M149")
def never_back_to_zero(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """Positions never fall within a row. The second document does not start at 0."""
    highest, _ = self.correct.turn_places(x, positions).cummax(dim=-1)
    return highest


@fault("rotary.given-positions-from-one", "default-positions", seam="turn_places")
def given_positions_from_one(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """One is added to positions that are given. Decoding is one token ahead of training."""
    places = self.correct.turn_places(x, positions)
    return places if positions is None else places + 1


@fault("rotary.default-positions-doubled", "default-positions", seam="turn_default", origin="M089")
def default_positions_doubled(self: Hooks, x: Tensor) -> Tensor:
    """Positions are doubled where none are given. Training and decoding differ."""
    return 2 * self.correct.turn_default(x)


@fault("rotary.single-token-at-zero", "one-token", seam="turn_places", origin="M083")
def single_token_at_zero(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """A single token is at position 0. Decoding with a cache is wrong from its first step on."""
    return self.turn_default(x) if x.shape[2] == 1 else self.correct.turn_places(x, positions)


@fault("rotary.single-tokens-of-one-row", "one-token", seam="turn_places", origin="M083")
def single_tokens_of_one_row(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """A fast path for one token reads the position of the first sequence. Batches are wrong."""
    places = self.correct.turn_places(x, positions)
    return places[:1] if x.shape[2] == 1 else places


@fault("rotary.wraps-around", "too-long", seam="turn_places", origin="pytorch/torchtitan PR#2849")
def wraps_around(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """Positions beyond the longest start again at 0. Long texts are silently wrong."""
    return self.correct.turn_places(x, positions) % self.sizes.max_length


@fault(
    "rotary.stays-at-last", "too-long", seam="turn_places", origin="rasbt/LLMs-from-scratch PR#940"
)
def stays_at_last(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """Positions beyond the longest stay at the last one. The end of long texts has no order."""
    return self.correct.turn_places(x, positions).clamp(max=self.sizes.max_length - 1)


@fault("rotary.length-of-the-first-call", "longer-than-before", seam="turn_places")
def length_of_the_first_call(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """The first call decides how many rows there are. Later, longer texts repeat the last one."""
    places = self.correct.turn_places(x, positions)
    longest = self.memory.setdefault("rotary length", x.shape[2])
    return places.clamp(max=longest - 1)


@fault("rotary.positions-go-on", "longer-than-before", seam="turn_default")
def positions_go_on(self: Hooks, x: Tensor) -> Tensor:
    """Positions go on from the call before. A second text begins where the first one ended."""
    first = int(self.memory.get("rotary tokens", 0))
    self.memory["rotary tokens"] = first + x.shape[2]
    return self.correct.turn_default(x) + first


@fault(
    "rotary.dynamic-table-kept",
    "longer-than-before",
    seam="has_turns",
    origin="M094",
    models=("plain",),
    choices={"rotary_scaling": "dynamic-ntk"},
)
def dynamic_table_kept(self: Hooks, module: Node, length: int, x: Tensor) -> bool:
    """The table of a longer text serves a shorter one. Its factor is that of the longer text."""
    kept, dtype, device = getattr(module, "kept", (0, None, None))
    return bool(kept >= length and dtype == x.dtype and device == x.device)
