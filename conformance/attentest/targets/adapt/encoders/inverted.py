"""Encoders that hide their tokens and see their padding: the mask that they make is inverted."""

from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.encoders.stack import KEEP
from attentest.targets.adapt.encoders.tokens import token_decoder, token_encoder
from attentest.targets.adapt.limits import built
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Reading, Unclear

_TOKENS = ((True, True, True, False, False), (True, False, True, True, False))
"""Which places of two texts hold tokens: the others are padding."""

_NEAR = 1e-9


def stack_of(thing: Any, reading: Reading, name: str) -> Code | None:
    """Return the stack in a class that embeds its tokens, None for any other.

    Raises Unclear where its layers cannot be called, and where its mask is inverted.
    """
    found = token_encoder(thing, reading, name) or token_decoder(thing, reading, name)
    if found is not None and not reading.anyway:
        _demand_tokens_seen(found, name or found.name)
    return found


def _demand_tokens_seen(code: Code, name: str) -> None:
    """Raise Unclear where padding changes what is computed elsewhere, and tokens do not.

    Of the ids alone an encoder knows its padding: nobody means to hide all else.
    """
    if KEEP not in code.signature.parameters:
        return
    try:
        with undisturbed():
            reached = _reached(built(code, torch.float64))
    except Exception:  # code that a user wrote may raise anything: it is asked about elsewhere
        return
    if reached == (False, True):
        raise Unclear(
            f"{name} sees its padding and hides its tokens: a change of a token reaches no other "
            f"place, and one of padding does. The mask that it makes of its ids is inverted. "
            f"--anyway (in Python: anyway=True) judges it all the same."
        )


def _reached(stack: nn.Module) -> tuple[bool, bool]:
    """Say whether a change of a token reaches another place, and one of padding."""
    source = torch.Generator().manual_seed(0)
    keep = torch.tensor(_TOKENS)
    shape = (*keep.shape, SIZES.d_model)
    x = torch.randn(shape, generator=source, dtype=torch.float64)
    before = stack(x, keep)

    def reaches(row: int, place: int) -> bool:
        moved = x.clone()
        moved[row, place] = moved[row, place].flip(0)
        return _differ(before[row], stack(moved, keep)[row], place)

    places = [(row, place) for row in range(len(keep)) for place in range(keep.shape[1])]
    tokens = any(reaches(*one) for one in places if keep[one])
    padding = all(reaches(*one) for one in places if not keep[one])
    return tokens, padding


def _differ(one: Tensor, other: Tensor, place: int) -> bool:
    """Say whether two outputs (L, D) differ at another place."""
    apart = (one - other).abs().amax(-1) > _NEAR
    apart[place] = False
    return bool(apart.any())
