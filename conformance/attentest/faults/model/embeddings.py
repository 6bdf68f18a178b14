"""Faults in the embedded input of a stack."""

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.model.shared import UNTIED
from attentest.faults.reference_models import Hooks, Node


@fault("model.positions-on-source-alone", "formula", seam="positions_of")
def positions_on_source_alone(self: Hooks, module: Node, side: str) -> nn.Module:
    """The target is embedded without positions. The decoder does not know the order."""
    return nn.Identity() if side == "target" else self.correct.positions_of(module, side)


@fault("model.one-embedding-for-both-sides", "formula", seam="embedding_of", choices=UNTIED)
def one_embedding_for_both_sides(self: Hooks, module: Node, side: str) -> Node:
    """The target is looked up in the source's table, though there are two.

    Ids of one language read tokens of the other, and one table is never trained.
    """
    return self.correct.embedding_of(module, "source")


@fault("model.positions-twice", "formula", seam="embed")
def positions_twice(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Positions are added by the embedding and by the stack. Order dominates the tokens."""
    return self.positions_of(module, side)(self.correct.embed(module, side, tokens))


@fault("model.positions-before-the-scale", "formula", seam="embed")
def positions_before_the_scale(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """The sum of embedding and position is scaled, not the embedding alone.

    Positions weigh as much as tokens by the root of the width.
    """
    root = float(self.sizes.d_model**0.5)
    embedded = self.embedding_of(module, side)(tokens) / root
    return self.positions_of(module, side)(embedded) * root


@fault("model.positions-by-sample", "padding-in-a-batch", seam="embed", origin="B041")
def positions_by_sample(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Source positions are counted along the batch. The order within a sequence is lost."""
    embedded = self.embedding_of(module, side)(tokens)
    if side == "target":
        return self.positions_of(module, side)(embedded)
    return self.positions_of(module, side)(embedded.transpose(0, 1)).transpose(0, 1)


@fault("model.positions-on-target-alone", "source-order-matters", seam="positions_of")
def positions_on_target_alone(self: Hooks, module: Node, side: str) -> nn.Module:
    """The source is embedded without positions. The source is a bag of words."""
    return nn.Identity() if side == "source" else self.correct.positions_of(module, side)


@fault("model.position-zero-for-all", "source-order-matters", seam="embed", origin="B119")
def position_zero_for_all(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Every token is embedded as if at position 0. The order is lost."""
    embedded = self.embedding_of(module, side)(tokens)
    alone = embedded.flatten(0, 1)[:, None]
    return self.positions_of(module, side)(alone).reshape(embedded.shape)


@fault(
    "model.order-though-none-declared",
    "source-order-matters",
    seam="embed",
    choices={"positional_encoding": "none"},
)
def order_though_none_declared(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """A ramp is added where no positions are declared. A set model depends on order."""
    embedded = self.correct.embed(module, side, tokens)
    ramp = torch.arange(tokens.shape[1], device=tokens.device).to(embedded.dtype)
    return embedded * (1.0 + 0.1 * ramp[:, None])


@fault("model.target-positions-from-the-end", "prefix-consistency", seam="embed")
def target_positions_from_the_end(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """Target positions count from the end. Each new token changes all positions."""
    embedded = self.embedding_of(module, side)(tokens)
    positions = self.positions_of(module, side)
    if side == "source":
        return positions(embedded)
    return positions(embedded.flip(1)).flip(1)


@fault("model.target-scaled-by-its-length", "prefix-consistency", seam="embed")
def target_scaled_by_its_length(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """The embedded target is divided by the root of its length.

    Later tokens change earlier ones.
    """
    embedded = self.correct.embed(module, side, tokens)
    return embedded if side == "source" else embedded / tokens.shape[1] ** 0.5


@fault("model.target-centred-over-time", "prefix-consistency", seam="embed")
def target_centred_over_time(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """The embedded target is centred over all steps. The future leaks through the mean."""
    embedded = self.correct.embed(module, side, tokens)
    return embedded if side == "source" else embedded - embedded.mean(dim=1, keepdim=True)
