"""Faults in the factor that rows are multiplied with."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams


@fault(
    "embedding.scale-missing",
    clause="embedding.scale",
    origin="B053",
    wrong="The rows are not multiplied by the root of the model width.",
    effect="Positions drown the words.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x


@fault(
    "embedding.scale-divided",
    clause="embedding.scale",
    origin="B053",
    wrong="The rows are divided by the root of the model width, not multiplied.",
    effect="Positions drown the words, the more so the wider the model.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x / d_model**0.5


@fault(
    "embedding.scale-without-root",
    clause="embedding.scale",
    wrong="The rows are multiplied by the model width, not by its root.",
    effect="Words drown the positions.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x * d_model


@fault(
    "embedding.scale-twice",
    clause="embedding.scale",
    wrong="The factor is in the rows from birth and applied again by every call.",
    effect="A checkpoint from elsewhere is right, and one written here is not.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return self.sound.scale_embedding(self.sound.scale_embedding(x, d_model), d_model)


@fault(
    "embedding.scale-undeclared",
    clause="embedding.scale",
    wrong="The rows are multiplied by the root of the model width where the plain row is declared.",
    effect="The declaration is wrong: a comparison by it misleads.",
    choices={"embedding_scale": "none"},
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x * d_model**0.5


@fault(
    "embedding.scale-by-heads",
    clause="embedding.scale",
    wrong="The factor is the root of the head width.",
    effect="Words are too small by the root of the number of heads; one head hides it.",
)
def scale_embedding(self: Seams, x: Tensor, d_model: int) -> Tensor:
    return x * float((d_model // self.sizes.heads) ** 0.5)
