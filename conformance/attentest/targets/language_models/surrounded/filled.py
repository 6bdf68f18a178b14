"""Decoder-only models that take texts of their greatest length alone."""

import re
from dataclasses import replace

from torch import nn

from attentest.targets.language_models.calling import Call, probe_tokens, with_part
from attentest.targets.language_models.construction.building import PROBE, Building
from attentest.targets.language_models.mistaken import CONTINUES
from attentest.targets.language_models.surrounded.modules import FilledUp
from attentest.targets.signatures import source_of

_SHORTER = re.compile(r"(<=|>)\s*[\w.]*(block|context|max|seq)\w*")
"""A comparison of the length of a text with the greatest one."""

_FILLED_UP = (
    "assumed that texts shorter than its greatest length, which it refuses, are filled up at their "
    "end: it is judged so, and if it is meant to take them, this is a mistake"
)


def filled_up(built: Building, model: nn.Module, plain: Call) -> Building | None:
    """Return `built` with texts that are filled up to its greatest length.

    None where a call of the `model` with such a text gives no logits either, and where it is meant
    to take shorter ones: a method continues them, or they are compared with the greatest length.
    """
    if any(hasattr(model, one) for one in CONTINUES) or _SHORTER.search(source_of(type(model))):
        return None
    if f"{FilledUp.__name__}(" in built.expression or "max_length" not in built.known:
        return None
    if not isinstance(with_part(model, plain, probe_tokens(steps=PROBE.max_length)), Call):
        return None
    made = f'{FilledUp.__name__}({built.expression}, "{plain.tokens}", sizes.max_length)'
    return replace(
        built,
        expression=made,
        space={**built.space, FilledUp.__name__: FilledUp},
        doubts=(*built.doubts, _FILLED_UP),
    )
