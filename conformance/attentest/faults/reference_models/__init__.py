"""The reference models: two small correct Transformers of different style, to inject faults into.

They exist for this purpose alone. A reference model is a class of hooks (see
:mod:`attentest.faults.reference_models.hooks`); a fault overrides one of them.
"""

from collections.abc import Mapping

from attentest.faults.reference_models.backend import DECLARED, reference_backend
from attentest.faults.reference_models.fused import Fused
from attentest.faults.reference_models.hooks import (
    Answer,
    Beam,
    Cache,
    Device,
    Finished,
    Function,
    Hooks,
    Inputs,
    Kept,
    Mask,
    Pair,
    State,
    TextCache,
    hook_names,
)
from attentest.faults.reference_models.modules import Node
from attentest.faults.reference_models.plain import Plain

REFERENCE_MODELS: Mapping[str, type[Hooks]] = {"plain": Plain, "fused": Fused}

__all__ = [
    "DECLARED",
    "REFERENCE_MODELS",
    "Answer",
    "Beam",
    "Cache",
    "Device",
    "Finished",
    "Function",
    "Fused",
    "Hooks",
    "Inputs",
    "Kept",
    "Mask",
    "Node",
    "Pair",
    "Plain",
    "State",
    "TextCache",
    "hook_names",
    "reference_backend",
]
