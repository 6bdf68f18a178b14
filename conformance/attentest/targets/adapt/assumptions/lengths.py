"""Greatest lengths of inputs: tables, masks and angles that are held for so many positions."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import POSITIONS, Code
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed

LONGEST = 20_000
"""Positions up to which a table is tried: as many as the farthest that is judged."""

_IN_USE = 600
"""Positions of the longest sequence that a part with attention is judged with."""

_OF_SEQUENCES = ("multi_head_attention", "encoder_layer", "encoder", "decoder_layer", "decoder")
"""Components that may hold masks or angles for so many positions."""

_OF_ANY_LENGTH = ("encoder_layer", "encoder", "decoder_layer", "decoder")
"""Those of them that may be built with that number, and are judged without."""


def longest(
    code: Code, probe: Probe, adapter: Adapter, masks: Callable[[int], Mapping[str, Tensor]]
) -> int | None:
    """Return how many positions `code` takes, None where no end was met.

    `masks` returns those that attention needs for so many queries and keys.
    """
    encodes = adapter.component == "positional_encoding"
    is_part = code.inner is not None
    attends = code.is_module and not is_part and adapter.component in _OF_SEQUENCES
    if not (encodes or attends or is_part):
        return None
    if encodes and _mixes_rows(probe, adapter):
        return None
    most = POSITIONS if is_part else LONGEST if encodes else _IN_USE

    def served(length: int) -> bool:
        given = {name: _as_long(one, length) for name, one in probe.given(adapter).items()}
        given |= masks(length) if attends else {}
        return not isinstance(probe.called(adapter, given), str)

    if served(most) or not served(1):
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if served(middle) else (low, middle)
    return low


def follows_length(code: Code, probe: Probe, adapter: Adapter) -> bool:
    """Say whether what is built with a greatest length is judged up to that and no further.

    An encoding that is built with a greater one takes that many positions: what gets the length
    may be another size, next to one that no name says. Layers and stacks are judged with sequences
    of any length, whatever they are built with.
    """
    if adapter.component != "positional_encoding":
        return adapter.component not in _OF_ANY_LENGTH
    try:
        with undisturbed():
            longer = code.build(SIZES.but(max_length=_IN_USE))
    except Exception:  # code that a user wrote may raise anything
        return True
    if not isinstance(longer, nn.Module):
        return True
    probe = replace(probe, built=longer.to(probe.dtype).eval())
    given = {name: _as_long(one, _IN_USE) for name, one in probe.given(adapter).items()}
    return not isinstance(probe.called(adapter, given), str)


def _as_long(value: Any, length: int) -> Any:
    """Return the first row of each sample so many times; what has no rows is returned as it is.

    Each row has memory of its own: code that writes into its input would raise otherwise.
    """
    rows = isinstance(value, Tensor) and value.dim() == 3
    return value[:, :1].repeat(1, length, 1) if rows else value


def _mixes_rows(probe: Probe, adapter: Adapter) -> bool:
    """Say whether a row depends on an earlier one: such code is no encoding, whatever it is called.

    What compares all pairs of positions needs more memory for a long input than there is.
    """
    given = probe.given(adapter)
    other = given["x"].clone()
    other[:, 0] += 1
    first, second = probe.called(adapter, given), probe.called(adapter, {**given, "x": other})
    if isinstance(first, str) or isinstance(second, str) or first.shape != second.shape:
        return False
    return first.dim() == other.dim() and not torch.equal(first[:, 1:], second[:, 1:])
