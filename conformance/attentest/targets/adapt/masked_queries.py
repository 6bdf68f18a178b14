"""Recognises a mask of padding that hides the rows of queries as well as keys.

`mask[:, :, None] & mask[:, None, :]` hides every key from a row of padding. Such a row is not read
by its caller, and has another output than the formula's.
"""

from dataclasses import replace

import torch

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.masks import STYLES, Style
from attentest.targets.adapt.probing import SEQUENCES, Probe, keys_of, mask_shows

_NARROW = ("per key", "broadcast")
"""The shapes in which a mask can say the same keys for all queries."""

_HIDDEN = [1, 3]
"""The positions that a probing mask hides: two, as the output of a row shows its own value."""


def masks_queries(probe: Probe, adapter: Adapter) -> str:
    """Return the mask argument that hides the rows of queries too, "" where there is none.

    The rows that are not hidden must reach the others that are not, and no further ones.
    """
    own = adapter.arguments.roles.get("mask", "")
    joined = bool(adapter.arguments.joined) or adapter.component != "multi_head_attention"
    if not own or adapter.component not in SEQUENCES or not joined or adapter.causal:
        return ""
    rows = keys_of(adapter, "mask", 0)
    keep = torch.ones((probe.batch, 1, 1, rows), dtype=torch.bool)
    keep[..., _HIDDEN] = False
    if mask_shows(probe, adapter, "mask", keep, keys=rows):
        return ""
    for style in STYLES:
        if style.shape in _NARROW and _hides_queries(probe, adapter, style, keep):
            return own
    return ""


def _hides_queries(probe: Probe, adapter: Adapter, style: Style, keep: torch.Tensor) -> bool:
    """Say whether a mask of `style` hides what `keep` hides, but in the row of a hidden query."""
    tried = replace(adapter, styles={**adapter.styles, "mask": style})
    rows = keep.shape[-1]
    for seen in (True, False):  # a row without keys sees all of them alike, or is set to 0
        shown = keep.expand(-1, -1, rows, -1).clone()
        shown[..., _HIDDEN, :] = seen
        if mask_shows(probe, tried, "mask", keep, keys=rows, shown=shown):
            return True
    return False
