"""Recognises what is built otherwise: buffers that are drawn, and networks with other outputs.

Attention by random features (Performer) gives other outputs than the formula, which depend on the
features that were drawn: it is no mistake in the formula. A network with a width of its own for the
output may be no part of a Transformer, and return probabilities.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
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


def of_shares(code: Code, probe: Probe, adapter: Adapter) -> list[str]:
    """Return the doubt of a network that has a width of its own for its output, which are shares.

    They are between 0 and 1, as the probabilities of a classifier.
    """
    fillings = code.construction.fillings if code.construction else {}
    widths = [own for own, one in fillings.items() if one.settles == {"d_model"}]
    if code.component != "feed_forward" or len(widths) < 2:
        return []
    found = probe.called(adapter, probe.given(adapter))
    if not isinstance(found, Tensor) or bool(((found < 0) | (found > 1)).any()):
        return []
    return [f"{widths[-1]} is a width of its own for what it returns, all of it between 0 and 1"]


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
