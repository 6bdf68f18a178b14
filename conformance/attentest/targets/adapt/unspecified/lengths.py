"""Recognises lengths that do something else than hide the keys of padding.

Code that unpads its input and pads its output again hides the keys of padding, and gives a row of
padding no output, or the output of padding alone. No caller reads such a row.
"""

from dataclasses import replace

import torch

from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.masks import Style
from attentest.targets.adapt.probing import Probe

_OF_ONE_SEQUENCE = ("encoder_layer", "encoder")
"""Components whose queries are their keys: the same rows are padding."""


def shows_wrong_lengths(probe: Probe, adapter: Adapter, role: str, style: Style, keys: int) -> bool:
    """Say whether lengths hide one key more or less than they say, or the others in their place."""
    keys = probing.keys_of(adapter, role, keys)
    tried = replace(adapter, styles={**adapter.styles, role: style})
    (keep,) = probing.masks_for(style, probe, tried, keys)
    more, less = keep.roll(1, -1), keep.roll(-1, -1)
    more[..., 0], less[..., -1] = True, False
    return any(
        probing.mask_shows(probe, tried, role, keep, keys=keys, shown=one)
        for one in (more, less, ~keep)
    )


def hide_queries(probe: Probe, adapter: Adapter, role: str, style: Style, keys: int) -> bool:
    """Say whether lengths hide the other keys, and the rows of the queries there as well.

    The rows of queries that are no padding must reach the keys that are none, and no others.
    """
    if not adapter.arguments.joined and adapter.component not in _OF_ONE_SEQUENCE:
        return False
    keys = probing.keys_of(adapter, role, keys)
    tried = replace(adapter, styles={**adapter.styles, role: style})
    (keep,) = probing.masks_for(style, probe, tried, keys)
    real = keep.transpose(-1, -2)
    return any(
        probing.mask_shows(probe, tried, role, keep, keys=keys, shown=torch.where(real, keep, seen))
        for seen in (torch.tensor(False), torch.tensor(True), ~keep)
    )


def of_each_head(name: str, own: str, is_needed: bool) -> str:
    """Return the question about the mask `own` of `name` that lengths alone do not break."""
    left = "" if is_needed else f": --give {own}=None judges it without"
    return (
        f"No mask of a shape that was tried hides a key by the {own} of {name}: it may need an "
        f"entry for each head, (B, H, Q, K){left}."
    )
