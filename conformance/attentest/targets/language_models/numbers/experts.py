"""Mixtures of experts inside of a call: the rows that they are given, and those they return."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attentest.targets.adapt.components import component_guessed, component_named
from attentest.targets.language_models.numbers.tracing import NEAR
from attentest_spec.setting import Floats

COMPONENT = "mixture_of_experts"


@dataclass(frozen=True)
class Mixture:
    """One call of a module whose class is `name`: what it was given, and what it returned."""

    name: str
    given: Floats
    returned: Floats

    def of(self, h: Floats) -> Floats | None:
        """Return what it makes of h (B, T, D), None where it was given something else."""
        if self.given.size != h.size or self.returned.size != h.size:
            return None
        apart = np.abs(self.given.reshape(h.shape) - h).max()
        return self.returned.reshape(h.shape) if apart <= NEAR * np.abs(h).max() else None


@contextmanager
def watched(model: nn.Module) -> Iterator[list[Mixture]]:
    """Yield the calls of all mixtures of experts in `model`, which grow as it is called."""
    calls: list[Mixture] = []

    def keep(module: nn.Module, given: Any, returned: Any) -> None:
        rows = [one for one in tree_leaves(given) if isinstance(one, Tensor)]
        made = [one for one in tree_leaves(returned) if isinstance(one, Tensor)]
        alike = [one for one in made if rows and one.shape == rows[0].shape]
        if alike:
            calls.append(Mixture(type(module).__name__, _numbers(rows[0]), _numbers(alike[0])))

    held = [one.register_forward_hook(keep) for one in model.modules() if is_mixture(one)]
    try:
        yield calls
    finally:
        for hook in held:
            hook.remove()


def is_mixture(module: nn.Module) -> bool:
    """Say whether the name of the class of `module` is that of a mixture of experts."""
    name = type(module).__name__
    return COMPONENT in (component_named(name), component_guessed(name))


def _numbers(tensor: Tensor) -> Floats:
    found: Floats = tensor.detach().double().numpy().copy()
    return found
