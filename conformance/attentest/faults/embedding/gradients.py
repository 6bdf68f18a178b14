"""Faults in the gradients, and in the frozen row."""

import torch
from torch import Tensor, nn

from attentest.faults.embedding.lookup import table_of
from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("embedding.table-detached", "gradient-only-to-used-rows", seam="lookup", kind="gradient")
def table_detached(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """The rows are looked up without a graph. The table is never trained."""
    return self.correct.lookup(module, tokens).detach()


@fault(
    "embedding.gradient-to-neighbour", "gradient-only-to-used-rows", seam="lookup", kind="gradient"
)
def gradient_to_neighbour(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """The hand-written backward pass adds the gradient to the row below.

    Every token trains its neighbour.
    """
    beside = self.correct.lookup(module, (tokens + 1) % self.vocabulary_of(module))
    return self.correct.lookup(module, tokens).detach() + beside - beside.detach()


@fault("embedding.decay-in-gradient", "gradient-only-to-used-rows", seam="lookup", kind="gradient")
def decay_in_gradient(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Every row gets a share of the gradient: a mean of the table is subtracted and added.

    Values are right, and tokens that do not occur drift.
    """
    mean = table_of(module).mean(dim=0)
    return self.correct.lookup(module, tokens) + 0.1 * (mean - mean.detach())


@fault("embedding.gradient-by-frequency", "repeated-tokens", seam="lookup", kind="gradient")
def gradient_by_frequency(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """A row's gradient is divided by its token's count. Frequent tokens train too slowly."""
    rows: Tensor = nn.functional.embedding(tokens, table_of(module), scale_grad_by_freq=True)
    return rows


@fault("embedding.gradient-of-last-occurrence", "repeated-tokens", seam="lookup", kind="gradient")
def gradient_of_last_occurrence(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """The backward pass assigns gradients where it should add them.

    Only a token's last occurrence counts.
    """
    flat = tokens.flatten()
    place = torch.arange(flat.numel(), device=flat.device)
    later = (flat[None, :] == flat[:, None]) & (place[None, :] > place[:, None])
    rows = self.correct.lookup(module, tokens)
    last = ~later.any(dim=1).reshape(tokens.shape)[..., None]
    return torch.where(last, rows, rows.detach())


@fault(
    "embedding.factor-outside-of-graph", "repeated-tokens", seam="scale_embedding", kind="gradient"
)
def factor_outside_of_graph(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The factor is applied to the numbers and not to their gradient.

    Values are right, and the table trains too slowly by the root of the width.
    """
    return x + (self.correct.scale_embedding(x, d_model) - x).detach()


@fault(
    "embedding.frozen-row-initialised-over",
    "frozen-row-is-zero",
    seam="lookup",
    origin="B054",
    kind="gradient",
)
def frozen_row_initialised_over(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """The frozen row of the pad id is initialised at random.

    Padding has a random vector for ever.
    """
    pad = self.sizes.source_pad
    rows: Tensor = nn.functional.embedding(tokens, table_of(module), padding_idx=pad)
    return rows


@fault("embedding.frozen-row-of-ones", "frozen-row-is-zero", seam="make_embedding", kind="gradient")
def frozen_row_of_ones(self: Hooks, vocabulary: int) -> Node:
    """The pad's row is ones and is not trained. Padding has a large constant vector."""
    return _frozen(self, vocabulary, 1.0)


@fault("embedding.pad-row-frozen", "pad-row", seam="make_embedding", kind="gradient")
def pad_row_frozen(self: Hooks, vocabulary: int) -> Node:
    """The row of the pad id is zero and never trained, as padding_idx does, and nothing says so.

    Where the pad id is used as a token as well, that token is never learned.
    """
    return _frozen(self, vocabulary, 0.0)


def _frozen(self: Hooks, vocabulary: int, value: float) -> Node:
    """Return an embedding whose row of the pad id holds `value` and gets no gradient."""
    built = self.correct.make_embedding(vocabulary)
    built.how = self
    pad = self.sizes.source_pad
    with torch.no_grad():
        table_of(built)[pad] = value
    frozen = torch.arange(vocabulary)[:, None] == pad
    table_of(built).register_hook(  # type: ignore[no-untyped-call]  # it has no types in torch
        lambda pulled: pulled.masked_fill(frozen.to(pulled.device), 0.0)
    )
    return built
