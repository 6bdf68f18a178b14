"""Faults in sizes, ids and lengths that must be refused."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.model.shared import built
from attentest.specimens import Node, Seams


@fault(
    "model.ids-clipped",
    clause="model.out-of-range-refused",
    wrong="Ids outside the vocabulary become its first or last one.",
    effect="A wrong tokenizer is found out by bad translations.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    last = self.vocabulary_of(self.embedding_of(module, side)) - 1
    return self.sound.embed(module, side, tokens.clamp(0, last))


@fault(
    "model.negative-ids-wrap",
    clause="model.out-of-range-refused",
    wrong="A negative id counts from the end of the table.",
    effect="-1 is the last word.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    rows = self.vocabulary_of(self.embedding_of(module, side))
    return self.sound.embed(module, side, torch.where(tokens < 0, tokens + rows, tokens))


@fault(
    "model.id-not-named",
    clause="model.out-of-range-named",
    wrong="A foreign id is refused by an error that does not tell it.",
    effect="The user reads `index out of range in self`.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    try:
        return self.sound.embed(module, side, tokens)
    except IndexError:
        raise IndexError("index out of range in self") from None


@fault(
    "model.long-source-cut",
    clause="model.too-long-input",
    wrong="Sources beyond the greatest length are cut.",
    effect="The end of a long sentence is not translated.",
)
def model(self: Seams, module: Node, source: Tensor, target: Tensor) -> Tensor:
    return self.sound.model(module, source[:, : self.sizes.max_length], target)


@fault(
    "model.positions-start-over",
    clause="model.too-long-input",
    wrong="Beyond the greatest length positions start again at 0.",
    effect="Two words of a long sentence stand at one place.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    pieces = embedded.split(max(self.sizes.max_length, 1), dim=1)
    return torch.cat([self.positions_of(module, side)(one) for one in pieces], dim=1)


@fault(
    "model.greatest-length-refused",
    clause="model.too-long-input",
    wrong="A sentence of exactly the greatest length is refused.",
    effect="One position of the table is never used.",
    kind="loud",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    if tokens.shape[1] >= self.sizes.max_length:
        raise ValueError(f"{tokens.shape[1]} tokens are too many.")
    return self.sound.embed(module, side, tokens)


@fault(
    "model.width-rounded-down",
    clause="model.impossible-sizes-refused",
    wrong="A width that the heads cannot share is rounded down.",
    effect="The model is narrower than the one that was asked for.",
)
def make_model(self: Seams) -> Node:
    width, heads = self.sizes.d_model, self.sizes.heads
    if self.choices.head_width == "d/h" and 0 < heads <= width:
        return built(self, d_model=width - width % heads)
    return self.sound.make_model()


@fault(
    "model.zero-layers-taken-for-default",
    clause="model.impossible-sizes-refused",
    wrong="A size of 0 counts as not given: `layers or 6`.",
    effect="No layers become six.",
)
def make_model(self: Seams) -> Node:
    return built(self, layers=self.sizes.layers or 6)


@fault(
    "model.signs-ignored",
    clause="model.impossible-sizes-refused",
    wrong="Sizes below zero are taken without their sign.",
    effect="A slip in a configuration makes another model.",
)
def make_model(self: Seams) -> Node:
    return built(self, d_ff=abs(self.sizes.d_ff))


@fault(
    "model.sizes-not-named",
    clause="model.impossible-sizes-refused",
    wrong="Impossible sizes are refused by an error without a number.",
    effect="The user has to guess which of ten sizes is wrong.",
)
def make_model(self: Seams) -> Node:
    try:
        return self.sound.make_model()
    except ValueError:
        raise ValueError("The configuration is not valid.") from None
