"""Faults in how tokens become the input of a stack."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.model.shared import UNTIED
from attentest.specimens import Node, Seams


@fault(
    "model.positions-on-source-alone",
    clause="model.formula",
    wrong="The target is embedded without positions.",
    effect="The decoder tells its past tokens apart by their number alone.",
)
def positions_of(self: Seams, module: Node, side: str) -> nn.Module:
    return nn.Identity() if side == "target" else self.sound.positions_of(module, side)


@fault(
    "model.one-embedding-for-both-sides",
    clause="model.formula",
    wrong="The target is looked up in the source's table, though there are two.",
    effect="Ids of one language read words of the other, and one table is never trained.",
    choices=UNTIED,
)
def embedding_of(self: Seams, module: Node, side: str) -> Node:
    return self.sound.embedding_of(module, "source")


@fault(
    "model.positions-twice",
    clause="model.formula",
    wrong="Positions are added by the embedding and by the stack.",
    effect="Order drowns the words.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    return self.positions_of(module, side)(self.sound.embed(module, side, tokens))


@fault(
    "model.positions-before-the-scale",
    clause="model.formula",
    wrong="The sum of embedding and position is scaled, not the embedding alone.",
    effect="Positions weigh as much as words by the root of the width.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    root = self.sizes.d_model**0.5
    embedded = self.embedding_of(module, side)(tokens) / root
    return self.positions_of(module, side)(embedded) * root


@fault(
    "model.positions-by-sample",
    clause="model.padding-in-a-batch",
    origin="B041",
    wrong="The source's positions are counted along the batch.",
    effect="A sentence reads otherwise in another row, and its order is lost.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    if side == "target":
        return self.positions_of(module, side)(embedded)  # type: ignore[no-any-return]
    return self.positions_of(module, side)(embedded.transpose(0, 1)).transpose(0, 1)  # type: ignore[no-any-return]


@fault(
    "model.positions-on-target-alone",
    clause="model.source-order-matters",
    wrong="The source is embedded without positions.",
    effect="The source is a bag of words.",
)
def positions_of(self: Seams, module: Node, side: str) -> nn.Module:
    return nn.Identity() if side == "source" else self.sound.positions_of(module, side)


@fault(
    "model.position-zero-for-all",
    clause="model.source-order-matters",
    origin="B119",
    wrong="Tokens are embedded one by one, each of them at position 0.",
    effect="Positions are added, and tell nothing.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    alone = embedded.flatten(0, 1)[:, None]
    return self.positions_of(module, side)(alone).reshape(embedded.shape)


@fault(
    "model.order-though-none-declared",
    clause="model.source-order-matters",
    wrong="A ramp over the sentence is added where no positions are declared.",
    effect="What is sold as a set model reads order.",
    choices={"positional_encoding": "none"},
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    ramp = torch.arange(tokens.shape[1], device=tokens.device).to(embedded.dtype)
    return embedded * (1.0 + 0.1 * ramp[:, None])


@fault(
    "model.target-positions-from-the-end",
    clause="model.prefix-consistency",
    wrong="Positions of the target are counted from its end.",
    effect="All positions move with every token that is generated.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    positions = self.positions_of(module, side)
    if side == "source":
        return positions(embedded)
    return positions(embedded.flip(1)).flip(1)


@fault(
    "model.target-scaled-by-its-length",
    clause="model.prefix-consistency",
    wrong="The embedded target is divided by the root of its length.",
    effect="What was said of the first words changes when more follow.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    return embedded if side == "source" else embedded / tokens.shape[1] ** 0.5


@fault(
    "model.target-centred-over-time",
    clause="model.prefix-consistency",
    wrong="The mean over all steps is taken off the embedded target.",
    effect="The future leaks by its mean.",
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.sound.embed(module, side, tokens)
    return embedded if side == "source" else embedded - embedded.mean(dim=1, keepdim=True)
