"""Faults in the factor that rows are multiplied with."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("embedding.scale-missing", "scale", seam="scale_embedding", origin="B053")
def scale_missing(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The rows are not multiplied by the root of the model width. Positions drown the words."""
    return x


@fault("embedding.scale-divided", "scale", seam="scale_embedding", origin="B053")
def scale_divided(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The rows are divided by the root of the model width, not multiplied.

    Positions drown the words, the more so the wider the model.
    """
    return x / float(d_model**0.5)


@fault("embedding.scale-without-root", "scale", seam="scale_embedding")
def scale_without_root(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The rows are multiplied by the model width, not by its root. Words drown the positions."""
    return x * d_model


@fault("embedding.scale-twice", "scale", seam="scale_embedding")
def scale_twice(self: Hooks, x: Tensor, d_model: int) -> Tensor:
    """The factor is in the rows from birth and applied again by every call.

    A checkpoint from elsewhere is right, and one written here is not.
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
    """The factor is the root of the head width.

    Words are too small by the root of the number of heads; one head hides it.
    """
    return x * float((d_model // self.sizes.heads) ** 0.5)
