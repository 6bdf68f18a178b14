"""Recognises buffers of numbers that are drawn when a module is built, as of random features.

Attention by random features (Performer) gives other outputs than the formula, which depend on the
features that were drawn: it is no mistake in the formula.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.limits import built
from attentest.targets.adapt.probing import Probe, undisturbed


def drawn_buffers(code: Code, probe: Probe) -> str:
    """Return what is said of floating-point buffers that each construction draws, "" for none."""
    if not _buffers(probe.built):
        return ""
    try:
        own, others = (_buffers_drawn(code, probe, seed) for seed in (1, 2))
    except Exception:  # code that a user wrote may raise anything
        return ""
    drawn = [name for name, one in own.items() if name in others and _differ(one, others[name])]
    if not drawn:
        return ""
    return f"the numbers of its buffer {drawn[0]} are drawn when it is built, as of random features"


def _buffers_drawn(code: Code, probe: Probe, seed: int) -> Mapping[str, Tensor]:
    """Return the buffers as they are built: what has been called may have counted its calls."""
    with undisturbed():
        torch.manual_seed(seed)
        return _buffers(built(code, probe.dtype))


def _buffers(module: object) -> Mapping[str, Tensor]:
    if not isinstance(module, nn.Module):
        return {}
    return {name: one for name, one in module.named_buffers() if one.is_floating_point()}


def _differ(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and not torch.equal(one.nan_to_num(), other.nan_to_num())
