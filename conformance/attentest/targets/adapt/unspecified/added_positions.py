"""Embeddings that add positions to their tokens, and encodings that add none to their input."""

import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Reading, Uncovered

_TOKENS = torch.tensor([[9, 10, 9, 11, 10, 12], [12, 9, 11, 10, 9, 9]])
_CLOSE = 1e-5


def demand_rows_alone(name: str, probe: Probe, adapter: Adapter) -> None:
    """Raise Uncovered for the sum of a row of each token and one of each position."""
    if adapter.component != "embedding" or not _adds_positions(probe, adapter):
        return
    raise Uncovered(
        f"{name} adds something to its rows that depends on the position alone, as the numbers "
        f"show: they are rows of tokens and of positions in one. Name a class that holds the "
        f"table of the tokens, and one that holds that of the positions; --as embedding --anyway "
        f"judges {name} as an embedding whose positions are added by another."
    )


def _adds_positions(probe: Probe, adapter: Adapter) -> bool:
    alike = torch.full_like(_TOKENS, 9)
    found = [probe.called(adapter, {"tokens": one}) for one in (alike, alike + 1, _TOKENS)]
    if not all(isinstance(one, Tensor) and one.ndim == 3 for one in found):
        return False
    first, second, mixed = (one.double() for one in found if isinstance(one, Tensor))
    places = first - first[:, :1]
    if torch.allclose(places, 0 * places, atol=_CLOSE):
        return False
    if not torch.allclose(second - second[:, :1], places, atol=_CLOSE):
        return False
    rows = mixed - places
    by_token = [rows[_TOKENS.eq(token)] for token in (9, 10, 11, 12)]
    return all(torch.allclose(one, one[:1], atol=_CLOSE) for one in by_token)


def demand_positions(name: str, probe: Probe, adapter: Adapter, reading: Reading) -> None:
    """Raise Uncovered for an encoding that adds nothing to its input, unless that is declared.

    One with parameters may be trained to add something.
    """
    is_asked = adapter.component == "positional_encoding" and "x" in adapter.arguments.roles
    if not is_asked or reading.strict or "positional_encoding" in reading.choices:
        return
    if isinstance(probe.built, nn.Module) and any(True for _ in probe.built.parameters()):
        return
    given = probe.given(adapter)
    still = {one: torch.zeros_like(value) for one, value in given.items()}
    before, after = probe.called(adapter, still), probe.called(adapter, given)
    if not isinstance(before, Tensor) or not isinstance(after, Tensor):
        return
    if before.any() or not after.any():
        return
    raise Uncovered(
        f"{name} returns its input, or a multiple of it, and adds no positions to it: either that "
        f"is a mistake, or its caller adds what it returns next to that. Name the function or the "
        f"class that adds them, or judge it as one that adds none with --choice "
        f"positional_encoding=none (in Python: choices={{'positional_encoding': 'none'}})."
    )
