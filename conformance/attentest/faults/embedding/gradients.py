"""Faults in the gradients, and in a row that gets none."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.embedding.shared import table_of
from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "embedding.table-detached",
    clause="embedding.gradient-only-to-used-rows",
    wrong="The rows are looked up outside of the graph.",
    effect="The table stays as it was born.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    return self.sound.lookup(module, tokens).detach()


@fault(
    "embedding.gradient-to-neighbour",
    clause="embedding.gradient-only-to-used-rows",
    wrong="The hand-written backward pass adds the gradient to the row below.",
    effect="Values are right, and every word trains its neighbour.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    beside = self.sound.lookup(module, (tokens + 1) % self.vocabulary_of(module))
    return self.sound.lookup(module, tokens).detach() + beside - beside.detach()


@fault(
    "embedding.decay-in-gradient",
    clause="embedding.gradient-only-to-used-rows",
    wrong="Every row gets a share of the gradient: a mean of the table is subtracted and added.",
    effect="Values are right, and words that do not occur drift.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    mean = table_of(module).mean(dim=0)
    return self.sound.lookup(module, tokens) + 0.1 * (mean - mean.detach())


@fault(
    "embedding.gradient-by-frequency",
    clause="embedding.repeated-tokens",
    wrong="The gradient of a row is divided by how often its word occurs, an option left on.",
    effect="Frequent words train too slowly.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    rows: Tensor = nn.functional.embedding(tokens, table_of(module), scale_grad_by_freq=True)
    return rows


@fault(
    "embedding.gradient-of-last-occurrence",
    clause="embedding.repeated-tokens",
    wrong="The hand-written backward pass assigns gradients to rows where it should add them.",
    effect="Of a word that occurs twice, one occurrence counts.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    flat = tokens.flatten()
    place = torch.arange(flat.numel(), device=flat.device)
    later = (flat[None, :] == flat[:, None]) & (place[None, :] > place[:, None])
    rows = self.sound.lookup(module, tokens)
    last = ~later.any(dim=1).reshape(tokens.shape)[..., None]
    return torch.where(last, rows, rows.detach())


@fault(
    "embedding.factor-outside-of-graph",
    clause="embedding.repeated-tokens",
    wrong="The factor is applied to the numbers and not to their gradient.",
    effect="Values are right, and the table trains too slowly by the root of the width.",
    kind="gradient",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x + (self.sound.scale_embedding(x, d_model) - x).detach()


@fault(
    "embedding.frozen-row-initialised-over",
    clause="embedding.frozen-row-is-zero",
    origin="B054",
    wrong="The pad's row gets no gradient, and a loop over all weights has filled it.",
    effect="A random vector stands at every pad for ever.",
    kind="gradient",
)
def lookup(self: Seams, module: Node, tokens: Tensor) -> Tensor:
    pad = self.sizes.source_pad
    rows: Tensor = nn.functional.embedding(tokens, table_of(module), padding_idx=pad)
    return rows


@fault(
    "embedding.frozen-row-of-ones",
    clause="embedding.frozen-row-is-zero",
    wrong="The pad's row is filled with ones and kept from training.",
    effect="Every pad says the same loud thing for ever.",
    kind="gradient",
)
def make_embedding(self: Seams, vocabulary: int) -> Node:
    built = self.sound.make_embedding(vocabulary)
    built.how = self
    pad = self.sizes.source_pad
    with torch.no_grad():
        table_of(built)[pad] = 1.0
    frozen = torch.arange(vocabulary)[:, None] == pad
    table_of(built).register_hook(  # type: ignore[no-untyped-call]  # it has no types in torch
        lambda pulled: pulled.masked_fill(frozen.to(pulled.device), 0.0)
    )
    return built
