"""Recognises attention to near positions alone, which no probing call infers as a choice.

A short text does not show a window that is longer than it, and a clause may draw a longer one.
"""

from dataclasses import replace

import torch
from torch import Tensor

from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.probing import Given, Probe

_LENGTH = 24
"""The positions of a probed text; clauses draw shorter ones."""


def window(probe: Probe, adapter: Adapter) -> str:
    """Return which positions a position sees, in a phrase, "" where these are all of them."""
    if adapter.component not in probing.SEQUENCES:
        return ""
    adapter = replace(adapter, causal=False)  # the mask is left out
    first = _reached(probe, adapter, [0])
    if first is None or not 1 < (wide := int(first[0].sum())) < _LENGTH:
        return ""
    reached = _reached(probe, adapter, range(_LENGTH))
    rows = torch.arange(_LENGTH)
    ahead = rows[None, :] - rows[:, None]
    bands = {
        "itself and the {} before it alone": (ahead >= 0) & (ahead < wide),
        "the {} to each side of it alone": ahead.abs() < wide,
    }
    for words, one in bands.items():
        if reached is not None and torch.equal(reached, one):
            return words.format(f"{wide - 1} position{'s' * (wide > 2)}")
    return ""


def _reached(probe: Probe, adapter: Adapter, places: range | list[int]) -> Tensor | None:
    """Return which rows of the output each of `places` reaches, None where a call fails."""
    given = probe.given(adapter, joined=True)
    role = "query" if "query" in given else "x"
    source = torch.Generator().manual_seed(2)
    shape = (probe.batch, _LENGTH, given[role].shape[-1])
    text = torch.randn(shape, generator=source, dtype=torch.float64).to(probe.dtype)
    before = probe.called(adapter, _with(given, role, text))
    if isinstance(before, str) or before.shape != text.shape:
        return None
    found = []
    for place in places:
        moved = text.clone()
        moved[:, place] = moved[:, place].flip(-1) + 1.0
        after = probe.called(adapter, _with(given, role, moved))
        if isinstance(after, str) or after.shape != text.shape:
            return None
        found.append(((before - after).abs() > 1e-9).flatten(2).any(-1).any(0))
    return torch.stack(found)


def _with(given: Given, role: str, text: Tensor) -> Given:
    """Return `given` with `text` for every input that is a sequence."""
    return {name: text if one is given[role] else one for name, one in given.items()}
