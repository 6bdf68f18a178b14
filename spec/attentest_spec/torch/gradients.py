"""Gradients of a number, also where code computes layers again in the backward pass."""

from collections.abc import Sequence

import torch
from torch import Tensor


def gradients(total: Tensor, wanted: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """Return the gradients of `total`, a number, in the shapes of the tensors `wanted`.

    A gradient is None for what `total` does not depend on.
    Reentrant checkpoints of torch refuse `torch.autograd.grad`: gradients are accumulated then, in
    tensors without any before.
    """
    try:
        # The second way needs the graph that the first one began with.
        return torch.autograd.grad(total, wanted, retain_graph=True, allow_unused=True)
    except RuntimeError as failure:
        if "checkpoint" not in str(failure):
            raise
    held = [one.grad for one in wanted]
    try:
        for one in wanted:
            one.grad = None
        torch.autograd.backward(total)
        return [one.grad for one in wanted]
    finally:
        for one, before in zip(wanted, held, strict=True):
            one.grad = before
