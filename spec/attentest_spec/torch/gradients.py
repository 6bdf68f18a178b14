"""Gradients of code of which layers are computed again in the backward pass."""

from collections.abc import Sequence

import torch
from torch import Tensor


def gradients(total: Tensor, wanted: Sequence[Tensor]) -> list[Tensor | None]:
    """Return the gradients of the number `total`, None for what it does not depend on.

    Reentrant checkpoints of torch refuse `torch.autograd.grad`: gradients are accumulated then, in
    tensors without any before.
    """
    try:
        # The second way needs the graph that the first one began with.
        return list(torch.autograd.grad(total, wanted, retain_graph=True, allow_unused=True))
    except RuntimeError as failure:
        if "checkpoint" not in str(failure):
            raise
    held = [one.grad for one in wanted]
    for one in wanted:
        one.grad = None
    torch.autograd.backward(total)
    found = [one.grad for one in wanted]
    for one, before in zip(wanted, held, strict=True):
        one.grad = before
    return found
