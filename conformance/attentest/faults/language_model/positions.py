"""Faults in the positions of tokens of decoder-only models, added or turned."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.language_model.settings import LEARNED, ROTARY, as_if
from attentest.faults.reference_models import Hooks, Mask, Node

PADDED = {**LEARNED, "padded_positions": "real-tokens"}
INSIDE = ("causal_layer",)


@fault(
    "language_model.first-block-turned",
    "rotary",
    seam="language_model",
    choices=ROTARY,
)
def first_block_turned(
    self: Hooks,
    module: Node,
    tokens: Tensor,
    mask: Mask = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Positions reach the first block alone. All others see a set of tokens."""
    places = self.default_places(tokens, mask) if positions is None else positions
    x = self.embed_tokens(module, tokens, places)
    for layer in self.causal_layers(module):
        x = layer(x, mask, places)
        places = places * 0
    return self.finish_language_model(module, x)


@fault(
    "language_model.all-columns-turned",
    "rotary",
    seam="causal_attention",
    origin="M079",
    choices={**ROTARY, "rotary_width": 0.5},
    components=INSIDE,
)
def all_columns_turned(
    self: Hooks, module: Node, x: Tensor, keep: Tensor, places: Tensor
) -> Tensor:
    """The part of the columns that is to be turned is dropped. No shape shows it."""
    return as_if(self, rotary_width="whole").causal_attention(module, x, keep, places)


@fault(
    "language_model.scaling-forgotten",
    "rotary",
    seam="causal_attention",
    origin="M070",
    choices={**ROTARY, "rotary_scaling": "llama3"},
    components=INSIDE,
)
def scaling_forgotten(self: Hooks, module: Node, x: Tensor, keep: Tensor, places: Tensor) -> Tensor:
    """The scaling of the configuration is read and not used. Short prompts hardly show it."""
    return as_if(self, rotary_scaling="none").causal_attention(module, x, keep, places)


@fault(
    "language_model.window-forgotten",
    "rotary",
    seam="causal_attention",
    origin="M130",
    choices={**ROTARY, "attention_window": "with-query"},
    components=INSIDE,
)
def window_forgotten(self: Hooks, module: Node, x: Tensor, keep: Tensor, places: Tensor) -> Tensor:
    """The sliding window is left out. Texts that are no longer than it do not show it."""
    return as_if(self, attention_window="none").causal_attention(module, x, keep, places)


@fault(
    "language_model.padding-counted",
    "padded-positions",
    seam="counted_places",
    origin="B051",
    choices=PADDED,
)
def padding_counted(self: Hooks, mask: Tensor) -> Tensor:
    """Padding is counted where real tokens are declared. A prompt depends on the longest one."""
    return self.column_places(mask)


@fault(
    "language_model.one-counter-for-the-batch",
    "padded-positions",
    seam="counted_places",
    origin="M146",
    choices=PADDED,
)
def one_counter_for_the_batch(self: Hooks, mask: Tensor) -> Tensor:
    """The first sequence is counted for all. The longest prompt is right, shorter ones are not."""
    return self.correct.counted_places(mask)[:1].expand(mask.shape)


@fault("language_model.counted-from-one", "padded-positions", seam="counted_places", choices=PADDED)
def counted_from_one(self: Hooks, mask: Tensor) -> Tensor:
    """The first real token has the position 1. Padded and unpadded texts differ."""
    return self.correct.counted_places(mask) + 1


@fault(
    "language_model.positions-ignored",
    "positions-given",
    seam="pass_places",
    origin="huggingface/transformers PR#35376",
    choices=LEARNED,
)
def positions_ignored(self: Hooks, places: Tensor) -> Tensor:
    """Positions that are given are not used. Padded and packed texts are read as plain ones."""
    return self.column_places(places)


@fault(
    "language_model.turns-ignore-positions",
    "positions-given",
    seam="pass_places",
    origin="M154",
    choices=ROTARY,
)
def turns_ignore_positions(self: Hooks, places: Tensor) -> Tensor:
    """Positions that begin again are replaced by columns. Documents run into each other."""
    return self.column_places(places)


@fault(
    "language_model.positions-of-the-first",
    "positions-given",
    seam="pass_places",
    origin="M146",
    choices=ROTARY,
)
def positions_of_the_first(self: Hooks, places: Tensor) -> Tensor:
    """The positions of the first sequence are used for all. A batch of one does not show it."""
    return places[:1].expand(places.shape)


@fault(
    "language_model.positions-never-fall",
    "positions-given",
    seam="pass_places",
    origin="M149",
    choices=LEARNED,
)
def positions_never_fall(self: Hooks, places: Tensor) -> Tensor:
    """Positions run on where a document ends. The second one does not begin at 0."""
    highest: Tensor = places.cummax(dim=1).values
    return highest


@fault("language_model.counter-runs-on", "default-positions", seam="column_places")
def counter_runs_on(self: Hooks, tokens: Tensor) -> Tensor:
    """Positions run on from the last call. The second text is read as the end of the first."""
    start = self.memory.get("read", 0)
    self.memory["read"] = (start + tokens.shape[1]) % 8
    places: Tensor = self.correct.column_places(tokens) + start
    return places


@fault("language_model.first-length-kept", "default-positions", seam="column_places")
def first_length_kept(self: Hooks, tokens: Tensor) -> Tensor:
    """Positions end at the length of the first text. All later tokens of a longer one share one."""
    longest = self.memory.setdefault("longest", tokens.shape[1])
    return self.correct.column_places(tokens).clamp(max=longest - 1)


@fault("language_model.added-and-turned", "distance-alone", seam="add_places", choices=ROTARY)
def added_and_turned(self: Hooks, positions: Node, x: Tensor, places: Tensor) -> Tensor:
    """Positions are added to the embedding as well. The output depends on where a text begins."""
    other = as_if(self, positional_encoding="interleaved")
    table = other.position_table(int(places.max()) + 1, x.shape[-1], x.device)
    return x + self.pick_rows(table.to(x.dtype), places)


@fault(
    "language_model.positions-rounded",
    "distance-alone",
    seam="pass_places",
    origin="M089",
    choices=ROTARY,
)
def positions_rounded(self: Hooks, places: Tensor) -> Tensor:
    """Positions are scaled and rounded. Equal distances are turned by different angles."""
    rounded: Tensor = (places * 3) // 2
    return rounded


@fault("language_model.positions-not-added", "order-matters", seam="add_places", origin="B043")
def positions_not_added(self: Hooks, positions: Node, x: Tensor, places: Tensor) -> Tensor:
    """Positions are made and not added. The order of earlier tokens is lost."""
    return x


@fault(
    "language_model.turns-dropped",
    "order-matters",
    seam="causal_attention",
    origin="sqliteai/warp PR#27",
    choices=ROTARY,
    components=INSIDE,
)
def turns_dropped(self: Hooks, module: Node, x: Tensor, keep: Tensor, places: Tensor) -> Tensor:
    """Queries and keys are not turned. The order of earlier tokens is lost."""
    return as_if(self, attention_rotary="none").causal_attention(module, x, keep, places)


@fault(
    "language_model.positions-in-bfloat16",
    "float32",
    seam="pass_places",
    origin="M068",
    choices=ROTARY,
)
def positions_in_bfloat16(self: Hooks, places: Tensor) -> Tensor:
    """Positions are kept in a narrow format. From 256 on, neighbours share one."""
    return places.to(torch.bfloat16).to(places.dtype)
