"""Encodings whose parameters are constants: a table of sines that nothing trains."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest_spec import CHOICES, Choices, Setting, Sizes
from attentest_spec.positional_encoding import table
from attentest_spec.torch import to_array

COMPONENT = "positional_encoding"

_CLOSE = 1e-5
_OFFSETS: tuple[str | float, ...] = ("none", 1, 2)
_NO_SINES = ("none", "learned", "learned-scaled")


def holds_constants(probe: Probe, adapter: Adapter, build: Callable[[Sizes], Any]) -> bool:
    """Say whether all that an encoding holds are frozen parameters with the sines of an option.

    They are no learned table: code loads and moves them as it does a buffer. Neither are others
    that are the same whatever random numbers they are built with: they are computed.
    """
    module = probe.built
    if adapter.component != COMPONENT or not isinstance(module, nn.Module):
        return False
    held = [*module.parameters()]
    if not held or any(one.requires_grad for one in held):
        return False
    given = {name: 0.0 * one for name, one in probe.given(adapter).items()}
    rows = probe.called(adapter, given)
    if not isinstance(rows, Tensor) or rows.ndim != 3 or not bool((rows == rows[:1]).all()):
        return False
    return _are_sines(to_array(rows[0])) or _are_computed(build)


def _are_computed(build: Callable[[Sizes], Any]) -> bool:
    """Say whether rows that differ are the same in two objects built with other random numbers."""
    found = []
    for seed in (1, 2):
        with undisturbed():
            torch.manual_seed(seed)
            found.append([*build(SIZES).parameters()])
    same = all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    return same and all(bool(one.isfinite().all()) and one.unique().numel() > 1 for one in found[0])


def _are_sines(rows: np.ndarray) -> bool:
    names = [one for one in CHOICES[COMPONENT].names if one not in _NO_SINES]
    for name, offset in product(names, _OFFSETS):
        choices = Choices(positional_encoding=name, position_offset=offset)
        expected = table(Setting(SIZES, choices), *rows.shape)
        if np.allclose(rows, expected, rtol=0, atol=_CLOSE):
            return True
    return False
