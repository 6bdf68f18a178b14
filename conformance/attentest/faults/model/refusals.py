"""Faults in sizes, ids and lengths that must be refused."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import built
from attentest.faults.reference_models import Hooks, Node


@fault("model.ids-clipped", "out-of-range-refused", seam="embed")
def ids_clipped(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Ids outside the vocabulary become its first or last one.

    A wrong tokenizer is found out by bad translations.
    """
    last = self.vocabulary_of(self.embedding_of(module, side)) - 1
    return self.correct.embed(module, side, tokens.clamp(0, last))


@fault("model.negative-ids-wrap", "out-of-range-refused", seam="embed")
def negative_ids_wrap(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """A negative id counts from the end of the table. -1 is the last word."""
    rows = self.vocabulary_of(self.embedding_of(module, side))
    return self.correct.embed(module, side, torch.where(tokens < 0, tokens + rows, tokens))


@fault("model.id-not-named", "out-of-range-named", seam="embed")
def id_not_named(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """A foreign id is refused by an error that does not tell it.

    The user reads `index out of range in self`.
    """
    try:
        return self.correct.embed(module, side, tokens)
    except IndexError:
        raise IndexError("index out of range in self") from None


@fault("model.long-source-cut", "too-long-input", seam="model")
def long_source_cut(self: Hooks, module: Node, source: Tensor, target: Tensor) -> Tensor:
    """Sources beyond the greatest length are cut. The end of a long sentence is not translated."""
    return self.correct.model(module, source[:, : self.sizes.max_length], target)


@fault("model.positions-start-over", "too-long-input", seam="embed")
def positions_start_over(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Beyond the greatest length positions start again at 0.

    Two words of a long sentence stand at one place.
    """
    embedded = self.embedding_of(module, side)(tokens)
    pieces = torch.split(embedded, max(self.sizes.max_length, 1), dim=1)
    return torch.cat([self.positions_of(module, side)(one) for one in pieces], dim=1)


@fault("model.greatest-length-refused", "too-long-input", seam="embed", kind="loud")
def greatest_length_refused(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """A sentence of exactly the greatest length is refused.

    One position of the table is never used.
    """
    if tokens.shape[1] >= self.sizes.max_length:
        raise ValueError(f"{tokens.shape[1]} tokens are too many.")
    return self.correct.embed(module, side, tokens)


@fault("model.width-rounded-down", "impossible-sizes-refused", seam="make_model")
def width_rounded_down(self: Hooks) -> Node:
    """A width that the heads cannot share is rounded down.

    The model is narrower than the one that was asked for.
    """
    width, heads = self.sizes.d_model, self.sizes.heads
    if self.choices.head_width == "d/h" and 0 < heads <= width:
        return built(self, d_model=width - width % heads)
    return self.correct.make_model()


@fault("model.zero-layers-taken-for-default", "impossible-sizes-refused", seam="make_model")
def zero_layers_taken_for_default(self: Hooks) -> Node:
    """A size of 0 counts as not given: `layers or 6`. No layers become six."""
    return built(self, layers=self.sizes.layers or 6)


@fault("model.signs-ignored", "impossible-sizes-refused", seam="make_model")
def signs_ignored(self: Hooks) -> Node:
    """Sizes below zero are taken without their sign.

    A slip in a configuration makes another model.
    """
    return built(self, d_ff=abs(self.sizes.d_ff))


@fault("model.sizes-not-named", "impossible-sizes-refused", seam="make_model")
def sizes_not_named(self: Hooks) -> Node:
    """Impossible sizes are refused by an error without a number.

    The user has to guess which of ten sizes is wrong.
    """
    try:
        return self.correct.make_model()
    except ValueError:
        raise ValueError("The configuration is not valid.") from None
