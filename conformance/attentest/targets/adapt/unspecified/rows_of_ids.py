"""Positional encodings that look up a row of their table for each whole number of their input."""

import torch
from torch import Tensor

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.adapt.reading import Uncovered

_IDS = torch.tensor([[5, 3, 2, 7, 4], [6, 2, 5, 3, 3]])


def demand_vectors(name: str, probe: Probe, adapter: Adapter) -> None:
    """Raise Uncovered for an encoding of ids or positions (B, T): it adds nothing to vectors."""
    own = adapter.arguments.roles.get("x", "")
    if adapter.component != "positional_encoding" or not own:
        return
    try:
        with undisturbed():
            found = probe.built(**{own: _IDS})
    except Exception:  # code that a user wrote may raise anything
        return
    if isinstance(found, Tensor) and found.shape == (*_IDS.shape, SIZES.d_model):
        raise Uncovered(
            f"{name} takes whole numbers (B, T) as {own}, and gives a row of a table for each: "
            f"token ids whose padding has no position, or positions. The spec has an encoding of "
            f"vectors (B, T, D): name the model that calls {name}, or a class that adds its rows "
            f"to vectors."
        )
