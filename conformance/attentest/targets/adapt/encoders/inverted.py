"""Encoders that hide their tokens and see their padding: the mask that they make is inverted."""

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.encoders.embedded import UNSEEN
from attentest.targets.adapt.encoders.stack import KEEP
from attentest.targets.adapt.limits import built
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest_spec import Backend

_TOKENS = ((True, True, True, False, False), (True, False, True, True, False))
"""The places of two texts that hold tokens: the others are padding."""

_NEAR = 1e-9


def with_tokens_seen(backend: Backend, stack: Code | None, reading: Reading) -> Backend:
    """Return `backend`; Unclear where a mask of the `stack` that is not judged hides all tokens."""
    if any(UNSEEN in one for one in getattr(backend, "assumed", ())):
        demand_tokens_seen(stack, reading)
    return backend


def demand_tokens_seen(code: Code | None, reading: Reading) -> None:
    """Raise Unclear where padding changes what an encoder computes elsewhere, and tokens do not.

    Of the ids alone an encoder knows its padding: no design hides all else. This is asked of
    one that cannot be read, and of one whose own masks are not judged.
    """
    if code is None or reading.anyway or KEEP not in code.signature.parameters:
        return
    try:
        with undisturbed():
            reached = _reached(built(code, torch.float64))
    except Exception:  # code that a user wrote may raise anything: it is asked about elsewhere
        return
    if reached == (False, True):
        raise Unclear(
            f"{code.name} sees its padding and hides its tokens: a change of a token reaches no "
            f"other place, and one of padding does. The mask that it makes of its ids is inverted. "
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
