"""Faults in the ids that are accepted or refused."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("embedding.last-row-missing", "every-id-served", seam="make_embedding", kind="loud")
def last_row_missing(self: Hooks, vocabulary: int) -> Node:
    """The table is one row short. The last id raises."""
    built = self.correct.make_embedding(vocabulary - 1)
    built.how = self
    return built


@fault("embedding.last-id-clipped", "every-id-served", seam="lookup")
def last_id_clipped(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Ids are clipped to one below the last. The last token becomes the one before it."""
    return self.correct.lookup(module, tokens.clamp(max=self.vocabulary_of(module) - 2))


@fault(
    "embedding.vocabulary-of-target",
    "every-id-served",
    seam="make_embedding",
    choices={"tying": "none"},
    kind="loud",
)
def vocabulary_of_target(self: Hooks, vocabulary: int) -> Node:
    """The source table has as many rows as the target vocabulary has tokens.

    Vocabularies of one size hide it; else the rarest tokens raise or rows are never used.
    """
    built = self.correct.make_embedding(self.sizes.target_vocabulary)
    built.how = self
    return built


@fault("embedding.ids-clipped", "out-of-range-refused", seam="embedding")
def ids_clipped(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Ids beyond the vocabulary are clipped to its last. A wrong tokenizer goes unnoticed."""
    return self.correct.embedding(module, tokens.clamp(max=self.vocabulary_of(module) - 1))


@fault("embedding.ids-wrapped", "out-of-range-refused", seam="embedding")
def ids_wrapped(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Ids beyond the vocabulary wrap around. A wrong tokenizer goes unnoticed."""
    vocabulary = self.vocabulary_of(module)
    return self.correct.embedding(
        module, torch.where(tokens >= vocabulary, tokens % vocabulary, tokens)
    )


@fault("embedding.foreign-ids-zero", "out-of-range-refused", seam="embedding")
def foreign_ids_zero(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Ids beyond the vocabulary give zeros, as one-hot rows would.

    A wrong tokenizer goes unnoticed.
    """
    foreign = tokens >= self.vocabulary_of(module)
    rows = self.correct.embedding(module, tokens.masked_fill(foreign, 0))
    return rows.masked_fill(foreign[..., None], 0.0)


@fault("embedding.negative-ids-from-the-end", "negative-id-refused", seam="embedding")
def negative_ids_from_the_end(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Negative ids index from the end. A marker such as -1 becomes the last token."""
    vocabulary = self.vocabulary_of(module)
    return self.correct.embedding(module, torch.where(tokens < 0, tokens % vocabulary, tokens))


@fault("embedding.negative-ids-clipped", "negative-id-refused", seam="embedding")
def negative_ids_clipped(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Negative ids are clipped to 0. A marker such as -100 becomes the first token."""
    return self.correct.embedding(module, tokens.clamp(min=0))
