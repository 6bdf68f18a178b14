"""Faults in the refusal of sizes, ids and lengths."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import built
from attentest.faults.reference_models import Hooks, Node


@fault("model.ids-clipped", "out-of-range-refused", seam="embed")
def ids_clipped(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Ids outside the vocabulary are clipped. A wrong tokenizer goes unnoticed."""
    last = self.vocabulary_of(self.embedding_of(module, side)) - 1
    return self.correct.embed(module, side, tokens.clamp(0, last))


@fault("model.negative-ids-wrap", "negative-id-refused", seam="embed")
def negative_ids_wrap(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """A negative id counts from the end of the table. -1 is the last token."""
    rows = self.vocabulary_of(self.embedding_of(module, side))
    return self.correct.embed(module, side, torch.where(tokens < 0, tokens + rows, tokens))


@fault(
    "model.id-not-named",
    "out-of-range-named",
    seam="embed",
    kind="wording",
)
def id_not_named(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """A foreign id raises without its number. The user reads `index out of range in self`."""
    try:
        return self.correct.embed(module, side, tokens)
    except IndexError:
        raise IndexError("index out of range in self") from None


@fault("model.long-source-cut", "too-long-input", seam="model")
def long_source_cut(self: Hooks, module: Node, source: Tensor, target: Tensor) -> Tensor:
    """Sources beyond the maximum length are cut. The end of a sequence is not translated."""
    return self.correct.model(module, source[:, : self.sizes.max_length], target)


@fault("model.positions-start-over", "too-long-input", seam="embed")
def positions_start_over(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Positions start again at 0 beyond the maximum length. Two tokens share a position."""
    embedded = self.embedding_of(module, side)(tokens)
    pieces = torch.split(embedded, max(self.sizes.max_length, 1), dim=1)
    return torch.cat([self.positions_of(module, side)(one) for one in pieces], dim=1)


@fault("model.greatest-length-refused", "too-long-input", seam="embed", kind="loud")
def greatest_length_refused(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """A sequence of the maximum length is refused. One position is never used."""
    if tokens.shape[1] >= self.sizes.max_length:
        raise ValueError(f"{tokens.shape[1]} tokens are too many.")
    return self.correct.embed(module, side, tokens)


@fault(
    "model.length-not-named",
    "too-long-input-named",
    seam="embed",
    kind="wording",
    choices={"positional_encoding": "learned"},
)
def length_not_named(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """A long sequence raises without its length. The user reads `index out of range in self`."""
    try:
        return self.correct.embed(module, side, tokens)
    except ValueError:
        raise IndexError("index out of range in self") from None


@fault("model.width-rounded-down", "indivisible-width-refused", seam="make_model")
def width_rounded_down(self: Hooks) -> Node:
    """An indivisible width is rounded down. The model is narrower than requested."""
    width, heads = self.sizes.d_model, self.sizes.heads
    if self.choices.head_width == "d/h" and 0 < heads <= width:
        return built(self, d_model=width - width % heads)
    return self.correct.make_model()


@fault("model.zero-layers-taken-for-default", "impossible-sizes-refused", seam="make_model")
def zero_layers_taken_for_default(self: Hooks) -> Node:
    """A size of 0 counts as missing: `layers or 6`. No layers become six."""
    return built(self, layers=self.sizes.layers or 6)


@fault("model.signs-ignored", "impossible-sizes-refused", seam="make_model")
def signs_ignored(self: Hooks) -> Node:
    """The sign of negative sizes is ignored. A typo in a configuration builds a model."""
    return built(self, d_ff=abs(self.sizes.d_ff))


@fault(
    "model.sizes-asserted",
    "impossible-sizes-named",
    seam="make_model",
    kind="wording",
)
def sizes_asserted(self: Hooks) -> Node:
    """Sizes are checked by a bare assertion. It names no number, and is skipped under python -O."""
    try:
        return self.correct.make_model()
    except ValueError:
        raise AssertionError from None


@fault(
    "model.sizes-not-named",
    "impossible-sizes-named",
    seam="make_model",
    kind="wording",
)
def sizes_not_named(self: Hooks) -> Node:
    """The error for impossible sizes has no number. The user has to guess which is wrong."""
    try:
        return self.correct.make_model()
    except ValueError:
        raise ValueError("The configuration is not valid.") from None
