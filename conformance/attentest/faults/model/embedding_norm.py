"""Faults in the norm between the embedded tokens and the first layer."""

from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

NORMED = {"embedding_norm": "present"}


@fault("model.embedding-norm-dropped", "embedding-norm", seam="norm_embedded", choices=NORMED)
def embedding_norm_dropped(self: Hooks, module: Node, side: str, x: Tensor) -> Tensor:
    """The norm after the embedding has parameters and is never called.

    The first layer is given what it was not trained on.
    """
    return x


@fault("model.embedding-norm-undeclared", "embedding-norm", seam="norm_embedded")
def embedding_norm_undeclared(self: Hooks, module: Node, side: str, x: Tensor) -> Tensor:
    """The sum of embedding and position is normalised where no norm is declared.

    The embedding's factor has no effect.
    """
    return functional.layer_norm(x, x.shape[-1:])


@fault("model.embedding-norm-before-positions", "embedding-norm", seam="embed", choices=NORMED)
def embedding_norm_before_positions(self: Hooks, module: Node, side: str, tokens: Tensor) -> Tensor:
    """The norm comes before the positions. Positions are not normalised."""
    embedded = self.embedding_of(module, side)(tokens)
    return self.positions_of(module, side)(self.correct.norm_embedded(module, side, embedded))


@fault(
    "model.embedding-norm-of-the-source-for-both", "formula", seam="norm_embedded", choices=NORMED
)
def embedding_norm_of_the_source_for_both(
    self: Hooks, module: Node, side: str, x: Tensor
) -> Tensor:
    """The target goes through the source's norm after the embedding.

    One norm learns from both sides, and the other is never trained.
    """
    return self.correct.norm_embedded(module, "source", x)


@fault(
    "model.embedding-norm-on-source-alone", "embedding-norm", seam="norm_embedded", choices=NORMED
)
def embedding_norm_on_source_alone(self: Hooks, module: Node, side: str, x: Tensor) -> Tensor:
    """The target goes into the decoder without its norm.

    One side depends on the scale of its embedding, the other does not.
    """
    return x if side == "target" else self.correct.norm_embedded(module, side, x)
