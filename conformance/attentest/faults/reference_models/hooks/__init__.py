"""The hooks: one small method per step of the Transformer, which a fault can override.

What is only a matter of order is written here once; every step that computes or builds something
is written twice, in different styles, by the reference models.
"""

import functools

from attentest.faults.reference_models.hooks.attention import Answer, Mask
from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.hooks.batch import BatchHooks
from attentest.faults.reference_models.hooks.beams import Beam, BeamHooks, Finished
from attentest.faults.reference_models.hooks.cache import Cache, Kept
from attentest.faults.reference_models.hooks.cached_text import CachedTextHooks, TextCache
from attentest.faults.reference_models.hooks.decoding import GreedyHooks, SamplingHooks
from attentest.faults.reference_models.hooks.embedding import Device
from attentest.faults.reference_models.hooks.experts import ExpertHooks
from attentest.faults.reference_models.hooks.loss import LossHooks
from attentest.faults.reference_models.hooks.optimiser import OptimiserHooks, State
from attentest.faults.reference_models.hooks.rotary import Pair
from attentest.faults.reference_models.hooks.schedule import ScheduleHooks
from attentest.faults.reference_models.hooks.stacks import Inputs
from attentest.faults.reference_models.hooks.sublayers import Function


class Hooks(
    CachedTextHooks,
    BatchHooks,
    LossHooks,
    ScheduleHooks,
    OptimiserHooks,
    GreedyHooks,
    BeamHooks,
    SamplingHooks,
    ExpertHooks,
):
    """Every hook of every component; the reference models implement the abstract ones."""

    @property
    def correct(self) -> "Hooks":
        """The model without a fault; overrides call the correct step through it."""
        return self


@functools.cache  # `cache` is a module of this package
def hook_names() -> frozenset[str]:
    """Return the names of all hooks: what a fault may override."""
    return frozenset(
        name
        for kind in Hooks.__mro__
        if issubclass(kind, Base)
        for name, value in vars(kind).items()
        if callable(value) and not name.startswith("_")
    )


__all__ = [
    "Answer",
    "Base",
    "Beam",
    "Cache",
    "Device",
    "Finished",
    "Function",
    "Hooks",
    "Inputs",
    "Kept",
    "Mask",
    "Pair",
    "State",
    "TextCache",
    "hook_names",
]
