"""Faults in the norm between the embedded tokens and the first layer."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

NORMED = {"embedding_norm": "present"}


@fault(
    "model.embedding-norm-dropped",
    clause="model.embedding-norm",
    wrong="The norm after the embedding has parameters and is never called.",
    effect="The first layer is given what it was not trained on.",
    choices=NORMED,
)
def norm_embedded(self: Seams, module: Node, side: str, x: Tensor) -> Tensor:
    return x


@fault(
    "model.embedding-norm-undeclared",
    clause="model.embedding-norm",
    wrong="The sum of embedding and position is normalised where no norm is declared.",
    effect="The embedding's factor has no effect.",
)
def norm_embedded(self: Seams, module: Node, side: str, x: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:])


@fault(
    "model.embedding-norm-before-positions",
    clause="model.embedding-norm",
    wrong="The embedding is normalised before positions are added.",
    effect="Positions weigh otherwise at every token.",
    choices=NORMED,
)
def embed(self: Seams, module: Node, side: str, tokens: Tensor) -> Tensor:
    embedded = self.embedding_of(module, side)(tokens)
    return self.positions_of(module, side)(self.sound.norm_embedded(module, side, embedded))  # type: ignore[no-any-return]


@fault(
    "model.embedding-norm-of-the-source-for-both",
    clause="model.formula",
    wrong="The target goes through the source's norm after the embedding.",
    effect="One norm learns from both sides, and the other is never trained.",
    choices=NORMED,
)
def norm_embedded(self: Seams, module: Node, side: str, x: Tensor) -> Tensor:
    return self.sound.norm_embedded(module, "source", x)


@fault(
    "model.embedding-norm-on-source-alone",
    clause="model.embedding-norm",
    wrong="The target goes into the decoder without its norm.",
    effect="One side depends on the scale of its embedding, the other does not.",
    choices=NORMED,
)
def norm_embedded(self: Seams, module: Node, side: str, x: Tensor) -> Tensor:
    return x if side == "target" else self.sound.norm_embedded(module, side, x)
