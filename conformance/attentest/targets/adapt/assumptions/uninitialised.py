"""Parameters of uninitialised memory, as those of `torch.empty` that a model fills later."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.assumptions.devices import B, limited
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest_spec.torch import TorchBackend

SENTENCE = (
    "assumed that another initialises {}, which is made as uninitialised memory (torch.empty): if "
    "nothing does, this is a mistake, and --strict reports it"
)
_WHOLE = ("model", "language_model")
"""The components that nothing around them initialises."""

_NORMS = ("rms_norm", "layer_norm")
"""The components that have a clause about their first values."""


def with_values_of_others(backend: B) -> B:
    """Return the inferred `backend`, whose first values are not judged where it sets none.

    Nothing is assumed of a whole model.
    """
    if not isinstance(backend, TorchBackend) or set(_WHOLE) & set(backend.components):
        return backend
    name = _uninitialised(backend)
    if not name:
        return backend
    limits = replace(backend.limits, initial_values=False)
    return limited(backend, limits, SENTENCE.format(name))


def _uninitialised(backend: TorchBackend) -> str:
    """Return the name of a parameter of a norm that holds uninitialised memory, "" for none."""
    recipe = next((backend.recipes[one] for one in _NORMS if one in backend.recipes), None)
    if recipe is None:
        return ""
    try:
        with undisturbed(), _filled_memory():
            built = recipe.build(SIZES)
            held = built.named_parameters() if isinstance(built, nn.Module) else ()
            return next((name for name, one in held if bool(torch.isnan(one).all())), "")
    except Exception:  # code that a user wrote may raise anything; a clause will report it
        return ""


@contextmanager
def _filled_memory() -> Iterator[None]:
    """Let torch fill uninitialised memory with NaN."""
    memory: Any = torch.utils.deterministic
    chosen = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    fills = memory.fill_uninitialized_memory
    try:
        memory.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(True, warn_only=True)
        yield
    finally:
        torch.use_deterministic_algorithms(chosen, warn_only=warns)
        memory.fill_uninitialized_memory = fills
