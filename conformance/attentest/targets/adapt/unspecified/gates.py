"""Gates alone: modules without parameters that multiply one half of their columns by the other."""

from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.probing import Probe, undisturbed
from attentest.targets.adapt.reading import Uncovered
from attentest.targets.adapt.recognise import GATES

_WIDTH = 8


def demand_network(name: str, component: str, probe: Probe) -> None:
    """Raise Uncovered for a gate alone, which is a part of a feed-forward network."""
    if component == "feed_forward" and (words := gate_alone(probe.built, probe.dtype)):
        raise Uncovered(
            f"{name} has no parameters and halves its columns: it returns {words}. That is the "
            f"gate of a feed-forward network, which is judged with its projections: name the class "
            f"of the network."
        )


def gate_alone(built: Any, dtype: torch.dtype) -> str:
    """Return the formula of a gate without parameters, "" for what is none."""
    if isinstance(built, nn.Module) and [*built.parameters()]:
        return ""
    source = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, _WIDTH, generator=source, dtype=torch.float64).to(dtype)
    try:
        with undisturbed():
            found = built(x)
    except Exception:  # code that a user wrote may raise anything
        return ""
    return _gate(x, found) if isinstance(found, Tensor) else ""


def _gate(x: Tensor, found: Tensor) -> str:
    """Return which half is multiplied by the activation of which, "" for another formula."""
    for words, first, second in (
        (
            "the first half times the activation of the second",
            x[..., : _WIDTH // 2],
            x[..., _WIDTH // 2 :],
        ),
        (
            "the second half times the activation of the first",
            x[..., _WIDTH // 2 :],
            x[..., : _WIDTH // 2],
        ),
    ):
        for name, activation in GATES.items():
            expected = first * activation(second)
            if found.shape == expected.shape and torch.allclose(found, expected, rtol=1e-5):
                return f"{words} ({name})"
    return ""
