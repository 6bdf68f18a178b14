"""Encodings whose parameters are constants: a table of sines that nothing trains."""

from itertools import product

import numpy as np
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.probing import SIZES, Probe
from attentest_spec import CHOICES, Choices, Setting
from attentest_spec.positional_encoding import table
from attentest_spec.torch import to_array

COMPONENT = "positional_encoding"

_CLOSE = 1e-5
_OFFSETS: tuple[str | float, ...] = ("none", 1, 2)
_NO_SINES = ("none", "learned", "learned-scaled")


def holds_constants(probe: Probe, adapter: Adapter) -> bool:
    """Say whether all that an encoding holds are frozen parameters with the sines of an option.

    They are no learned table: code loads and moves them as it does a buffer.
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
    return _are_sines(to_array(rows[0]))


def _are_sines(rows: np.ndarray) -> bool:
    names = [one for one in CHOICES[COMPONENT].names if one not in _NO_SINES]
    for name, offset in product(names, _OFFSETS):
        choices = Choices(positional_encoding=name, position_offset=offset)
        expected = table(Setting(SIZES, choices), *rows.shape)
        if np.allclose(rows, expected, rtol=0, atol=_CLOSE):
            return True
    return False
