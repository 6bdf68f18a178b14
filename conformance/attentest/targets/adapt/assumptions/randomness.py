"""Random numbers in training mode, of modules that are built with a dropout of 0."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.probing import undisturbed
from attentest_spec.torch.flops import OperationMode


def is_random_in_training(module: nn.Module, answer: Callable[[], object]) -> bool:
    """Say whether the answers of `module` in training mode differ by the state of the generator.

    What differs from evaluation in the same way at every call is no dropout, but a mistake.
    """
    module.train()
    with undisturbed():
        found, draws = _answer_and_draws(answer, 0)
        calls = 1 + _RARE_DRAWS * draws
        differs = any(_differs(found, _answer_and_draws(answer, 1 + n)[0]) for n in range(calls))
    module.eval()
    return differs


_RARE_DRAWS = 60
"""Calls of a module that draws random numbers: few of them change an output at a small rate."""


class _Draws(OperationMode):
    """Notes whether an operation draws random numbers."""

    def __init__(self) -> None:
        """Begin with none that does."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call `func`, and note whether it draws."""
        self.seen = self.seen or torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def _answer_and_draws(answer: Callable[[], object], seed: int) -> tuple[object, bool]:
    """Return an answer under a `seed`, and whether it draws random numbers."""
    torch.manual_seed(seed)
    with _Draws() as draws:
        found = answer()
    return found, draws.seen


def _differs(one: object, other: object) -> bool:
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return False
    return not torch.equal(one.nan_to_num(), other.nan_to_num())
