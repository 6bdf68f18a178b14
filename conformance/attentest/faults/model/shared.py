"""Helpers that the faults of the chapter `model` share."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from attentest.faults.reference_models import Hooks, Node

LOG_PROBABILITIES = {"output": "log-probabilities"}
UNTIED = {"tying": "none"}


def built(self: Hooks, **changes: Any) -> Node:
    """Build a correct model, at other sizes where they are given."""
    correct = self.correct
    return type(correct)(correct.sizes.but(**changes), correct.choices).make_model()


def real_tokens(self: Hooks, source: Tensor) -> Tensor:
    """Return which source tokens (B, S, 1) are not padding."""
    return (source != self.sizes.source_pad)[..., None]


class Unregistered(nn.Module):
    """Layers that torch does not register."""

    def __init__(self, kept: Any) -> None:
        super().__init__()
        self.kept = kept

    def __iter__(self) -> Iterator[nn.Module]:
        return iter(self.kept.values() if isinstance(self.kept, dict) else self.kept)


def halved(gradient: Tensor) -> Tensor:
    """Return half of a gradient."""
    return gradient / 2


def matrix_of(part: Node) -> nn.Parameter:
    """Return the vocabulary matrix of an embedding or a generator."""
    return next(one for one in part.parameters() if one.dim() > 1)
