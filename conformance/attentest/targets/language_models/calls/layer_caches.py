"""Calls of decoder-only models that cannot do without a list of caches, one of each layer."""

import inspect
from contextlib import suppress
from dataclasses import replace

from torch import nn

from attentest.targets.adapt.reading import Unclear
from attentest.targets.language_models.argument_names import caches_named
from attentest.targets.language_models.calling import Arguments, Call, fitted
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.language_models.surrounded.modules import called_of


class NoCaches(list[None]):
    """A list of None for each layer; its representation is an expression of the `model`."""

    def __init__(self, place: str) -> None:
        """Hold None for each layer of the list of modules at `place` in the model."""
        super().__init__([None] * PROBE.layers)
        self.place = place

    def __repr__(self) -> str:
        return f"[None] * len(model.{self.place})"


def with_no_caches(model: nn.Module, found: Arguments, name: str) -> tuple[Arguments, Call] | None:
    """Return the arguments and the call with a list of caches that are None, None where none fits.

    Code reads a cache of each layer from it, and a call without the list raises.
    """
    place = next(
        (
            own
            for own, one in model.named_modules()
            if isinstance(one, nn.ModuleList | nn.Sequential) and len(one) == PROBE.layers
            if all(part.isidentifier() for part in own.split("."))
        ),
        "",
    )
    for own in caches_named(inspect.signature(called_of(model)).parameters) if place else ():
        fixed = {**found.plain.fixed, own: NoCaches(place)}
        tried = replace(found, plain=replace(found.plain, fixed=fixed))
        with suppress(Unclear):
            return tried, fitted(model, tried, name)
    return None
