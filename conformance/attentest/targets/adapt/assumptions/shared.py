"""Modules with fixed arrays that all parts of one process have in common.

Decoder-only models that a memoised function gives one are built anew instead.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import nn

from attentest.targets.adapt.assumptions.devices import B, limited
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.deep_copies import copy_of
from attentest_spec import Sizes
from attentest_spec.torch import Recipe, TorchBackend

SENTENCE = (
    "assumed that a process holds one of it: all that are built share the module {}, so that "
    "moving one, or changing its precision, changes the others. If several are used at a time, "
    "this is a mistake, and --strict reports it"
)


def with_own_arrays(backend: B) -> B:
    """Return the inferred `backend`, whose parts are copies where they share fixed arrays.

    Nothing is assumed where what is shared is trained.
    """
    if not isinstance(backend, TorchBackend):
        return backend
    shared = next(filter(None, (shared_module(one.build) for one in backend.recipes.values())), "")
    if not shared:
        return backend
    recipes = {name: _copied(one) for name, one in backend.recipes.items()}
    copied: Any = replace(backend, recipes=recipes)
    found: B = limited(copied, copied.limits, SENTENCE.format(shared))
    return found


def shared_module(build: Callable[[Sizes], Any]) -> str:
    """Return the name of a module with fixed arrays that two models hold, "" for none.

    It is "" as well where what is built cannot be copied.
    """
    try:
        with undisturbed():
            one, other = build(SIZES), build(SIZES)
            if not isinstance(one, nn.Module) or one is other:
                return ""
            held = {id(module) for module in other.modules()}
            both = {name: part for name, part in one.named_modules() if id(part) in held}
            if any(True for part in both.values() for _ in part.parameters()):
                return ""
            copy_of(one)
    except Exception:  # code that a user wrote may raise anything; a clause will report it
        return ""
    return next((name for name, part in both.items() if [*part.buffers(recurse=False)]), "")


def _copied(recipe: Recipe) -> Recipe:
    """Return `recipe` with what it builds copied, so that nothing is shared."""

    def build(sizes: Sizes) -> Any:
        return copy.deepcopy(recipe.build(sizes))

    return replace(recipe, build=build)
