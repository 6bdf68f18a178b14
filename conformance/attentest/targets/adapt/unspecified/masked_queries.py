"""Recognises a mask of padding that hides the rows of queries as well as keys.

`mask[:, :, None] & mask[:, None, :]` hides every key from a row of padding, and with `==` in the
place of `&` every key that is no padding. Such a row is not read by its caller, and has another
output than the formula's.
"""

from dataclasses import replace

import torch
from torch import Tensor

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
    if _shows(probe, adapter, keep, keep):
        return ""
    narrow = [style for style in STYLES if style.shape in _NARROW]
    return own if any(_hides_queries(probe, adapter, style, keep) for style in narrow) else ""


def answers_without(probe: Probe, adapter: Adapter) -> bool:
    """Say whether code answers where its mask is None."""
    arguments = adapter.arguments
    roles = {role: own for role, own in arguments.roles.items() if role != "mask"}
    fixed = {**arguments.fixed, arguments.roles["mask"]: None}
    without = replace(adapter, arguments=replace(arguments, roles=roles, fixed=fixed))
    return not isinstance(probe.called(without, {**probe.given(without), "mask": None}), str)


def _hides_queries(probe: Probe, adapter: Adapter, style: Style, keep: Tensor) -> bool:
    """Say whether a mask of `style` hides what `keep` hides, but in the row of a hidden query."""
    tried = replace(adapter, styles={**adapter.styles, "mask": style})
    rows = keep.shape[-1]
    # A row without keys sees all of them alike, or is set to 0; padding may see padding alone.
    for seen in (torch.tensor(True), torch.tensor(False), ~keep):
        shown = keep.expand(-1, -1, rows, -1).clone()
        shown[..., _HIDDEN, :] = seen
        if _shows(probe, tried, keep, shown):
            return True
    return False


def _shows(probe: Probe, adapter: Adapter, keep: Tensor, shown: Tensor) -> bool:
    """Say whether the mask `keep` hides what `shown` hides, in an output of the right shape."""
    rows = keep.shape[-1]
    given = probe.given(adapter, keys=rows)
    output = probe.called(adapter, {**given, "mask": keep})
    like = next(one for one in given.values() if isinstance(one, Tensor))
    if isinstance(output, str) or output.shape != like.shape:
        return False
    return mask_shows(probe, adapter, "mask", keep, keys=rows, shown=shown)
