"""Gradients of a number for leaves, also where only a call of `backward` gives them."""

from collections.abc import Sequence

import torch
from torch import Tensor


def gradients_of(total: Tensor, wanted: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """Return the gradient of `total` for each of the leaves `wanted`, None where there is none."""
    try:
        return torch.autograd.grad(total, wanted, allow_unused=True, retain_graph=True)
    except RuntimeError as failure:
        if "checkpoint" not in str(failure):
            raise
        return _accumulated(total, wanted)


def _accumulated(total: Tensor, wanted: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """Return the gradients that a call of `backward` leaves in the leaves.

    Checkpoints that run their part again as a graph of its own take no other call.
    """
    before = [one.grad for one in wanted]
    try:
        for one in wanted:
            one.grad = None
        total.backward()  # type: ignore[no-untyped-call]  # of torch
        return [one.grad for one in wanted]
    finally:
        for one, grad in zip(wanted, before, strict=True):
            one.grad = grad
