"""Faults in the factor that rows are multiplied with."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("embedding.scale-missing", "scale", seam="scale_embedding", origin="B053")
def scale_missing(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The rows are not multiplied by the root of the model width. Positions dominate the tokens."""
    return x


@fault("embedding.scale-divided", "scale", seam="scale_embedding", origin="B053")
def scale_divided(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The rows are divided by the root of the model width. Positions dominate the tokens."""
    return x / float(d_model**0.5)


@fault("embedding.scale-without-root", "scale", seam="scale_embedding")
def scale_without_root(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The rows are multiplied by the width, not its root. Tokens dominate the positions."""
    return x * d_model


@fault("embedding.scale-twice", "scale", seam="scale_embedding")
def scale_twice(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The factor is in the rows and applied by every call too.

    A checkpoint written here fits nowhere else.
    """
    return self.correct.scale_embedding(self.correct.scale_embedding(x, d_model), d_model)


@fault(
    "embedding.scale-undeclared",
    "scale",
    seam="scale_embedding",
    choices={"embedding_scale": "none"},
)
def scale_undeclared(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The rows are multiplied by the root of the model width where the plain row is declared.

    The declaration is wrong: a comparison by it misleads.
    """
    return x * float(d_model**0.5)


@fault("embedding.scale-by-heads", "scale", seam="scale_embedding")
def scale_by_heads(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The factor is the root of the head width. Vectors are too small; one head hides it."""
    return x * float((d_model // self.sizes.heads) ** 0.5)
