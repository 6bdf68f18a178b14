"""The pad id that the code of an encoder has as a number, as calls of its layers show."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attentest.targets.adapt.probing import undisturbed

_BATCH, _LENGTH, _HIDDEN = 2, 5, 1
_MOST = 4
"""The largest id that is tried; the last id of the vocabulary is, too."""


def pad_of_code(stack_of: Callable[[int], nn.Module], vocabulary: int, width: int) -> int:
    """Return the id that hides a place from others in the stack that `stack_of` makes with an id.

    The other places hold the id 0, or 1 where 0 is tried: code whose pad id is 0 shows an effect of
    all ids, and one whose pad id is 1 shows an effect of these two. Everything else is 0.
    """
    tried = [*range(_MOST + 1), vocabulary - 1]
    x = torch.randn(_BATCH, _LENGTH, width, generator=torch.Generator().manual_seed(0))
    keep = torch.ones(_BATCH, _LENGTH, dtype=torch.bool)
    keep[:, _HIDDEN] = False
    try:
        with undisturbed():
            hidden = [one for one in tried if _hides(stack_of(one), x, keep)]
    except Exception:  # code that a user wrote may raise anything
        return 0
    if hidden == [0, 1]:
        return 1
    return hidden[0] if len(hidden) == 1 else 0


def _hides(stack: nn.Module, x: Tensor, keep: Tensor) -> bool:
    return not torch.equal(stack(x).nan_to_num(), stack(x, keep=keep).nan_to_num())
