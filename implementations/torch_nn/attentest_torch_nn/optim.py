"""The optimiser and the scheduler of the library, with the constants of Vaswani et al. 2017."""

from __future__ import annotations

from collections.abc import Iterable

from torch.nn import Parameter
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from .model import check_sizes


def adam(parameters: Iterable[Parameter], rate: float = 1.0) -> Adam:
    """Return the library's Adam; a rate of 1 is for a scheduler that sets the whole of it."""
    return Adam(parameters, lr=rate, betas=(0.9, 0.98), eps=1e-9)


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
