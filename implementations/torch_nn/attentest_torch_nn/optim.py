"""The learning rate as a scheduler of the library."""

from __future__ import annotations

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from .model import check_sizes


def warm_up(optimizer: Optimizer, d_model: int, warmup: int = 4000, done: int = 0) -> LambdaLR:
    """Return a scheduler with the rates of Vaswani et al. 2017, 5.3, after `done` updates.

    The rate of the optimiser is the factor of all rates. The library counts from 0.
    """
    check_sizes(d_model=d_model, warmup=warmup)

    def share(epoch: int) -> float:
        step = epoch + 1
        return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))

    for group in optimizer.param_groups:
        group.setdefault("initial_lr", group["lr"])
    return LambdaLR(optimizer, share, last_epoch=done - 1)
