"""Faults in which ids are served, and which are refused."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "embedding.last-row-missing",
    clause="embedding.every-id-served",
    wrong="The table is one row short: pads were not counted.",
    effect="The rarest word raises, and no other.",
    kind="loud",
)
def make_embedding(self: Seams, vocabulary: int) -> Node:
    built = self.sound.make_embedding(vocabulary - 1)
    built.how = self
    return built


@fault(
    "embedding.last-id-clipped",
    clause="embedding.every-id-served",
    wrong="Ids are clipped to one below the last.",
    effect="The rarest word becomes the one before it.",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, tokens.clamp(max=self.vocabulary_of(module) - 2))


@fault(
    "embedding.vocabulary-of-target",
    clause="embedding.every-id-served",
    wrong="The source table has as many rows as the target vocabulary has words.",
    effect="Vocabularies of one size hide it; else the rarest words raise or rows are never used.",
    choices={"tying": "none"},
    kind="loud",
)
def make_embedding(self: Seams, vocabulary: int) -> Node:
    built = self.sound.make_embedding(self.sizes.target_vocabulary)
    built.how = self
    return built


@fault(
    "embedding.ids-clipped",
    clause="embedding.out-of-range-refused",
    wrong="Ids beyond the vocabulary are clipped to its last.",
    effect="A tokenizer of another vocabulary goes unnoticed.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.embedding(module, tokens.clamp(max=self.vocabulary_of(module) - 1))


@fault(
    "embedding.ids-wrapped",
    clause="embedding.out-of-range-refused",
    wrong="Ids beyond the vocabulary start again from its first.",
    effect="A tokenizer of another vocabulary goes unnoticed.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    vocabulary = self.vocabulary_of(module)
    return self.sound.embedding(
        module, torch.where(tokens >= vocabulary, tokens % vocabulary, tokens)
    )


@fault(
    "embedding.foreign-ids-zero",
    clause="embedding.out-of-range-refused",
    wrong="Ids beyond the vocabulary give zeros, as a product with one-hot rows would.",
    effect="A word that is not in the vocabulary says nothing, and nobody is told.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    foreign = tokens >= self.vocabulary_of(module)
    rows = self.sound.embedding(module, tokens.masked_fill(foreign, 0))
    return rows.masked_fill(foreign[..., None], 0.0)


@fault(
    "embedding.negative-ids-from-the-end",
    clause="embedding.negative-id-refused",
    wrong="Negative ids count from the end of the table, as indexing does.",
    effect="A marker such as -1 becomes the rarest word.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    vocabulary = self.vocabulary_of(module)
    return self.sound.embedding(module, torch.where(tokens < 0, tokens % vocabulary, tokens))


@fault(
    "embedding.negative-ids-clipped",
    clause="embedding.negative-id-refused",
    wrong="Negative ids are clipped to 0.",
    effect="A marker such as -100 becomes the first word, often the pad.",
)
def embedding(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.embedding(module, tokens.clamp(min=0))
