"""Encoders that hide their tokens and see their padding: the mask that they make is inverted."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.encoders.embedded import UNSEEN
from attentest.targets.adapt.encoders.inputs.positions import with_positions
from attentest.targets.adapt.encoders.mixing import as_called
from attentest.targets.adapt.encoders.stack import KEEP
from attentest.targets.adapt.limits import built
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest_spec import Backend, Sizes

_TOKENS = ((True, True, True, False, False), (True, False, True, True, False))
"""The places of two texts that hold tokens: the others are padding."""

_NEAR = 1e-9

Read = TypeVar("Read", bound=Any)


def with_tokens_seen(backend: Backend, stack: Code | None, reading: Reading) -> Backend:
    """Return `backend`, called as the class of the `stack` calls its layers.

    Unclear where a mask of the `stack` that is not judged hides all tokens.
    """
    if any(UNSEEN in one for one in getattr(backend, "assumed", ())):
        demand_own_padding(stack, reading)
        demand_tokens_seen(stack, reading)
    return with_positions(as_called(backend, stack, reading), stack, reading)  # type: ignore[no-any-return]


def demand_own_padding(code: Code | None, reading: Reading) -> None:
    """Raise Unclear for an encoder in which the padding of one sample hides keys of another."""
    if code is None or reading.anyway or KEEP not in code.signature.parameters:
        return
    try:
        with undisturbed():
            stack = built(code, torch.float64)
            keep = torch.tensor(_TOKENS)
            shape = (*keep.shape, SIZES.d_model)
            seeded = torch.Generator().manual_seed(0)
            x = torch.randn(shape, generator=seeded, dtype=torch.float64)
            first, other = (stack(x, one)[0] for one in (keep, keep[[0, 0]]))
    except Exception:  # code that a user wrote may raise anything: it is asked about elsewhere
        return
    if not torch.equal(first.nan_to_num(), other.nan_to_num()):
        raise Unclear(
            f"{code.name} mixes the masks of a batch: where the padding of one sample is changed, "
            f"the output of another changes. A mask that is repeated for each head has to keep "
            f"the heads of a sample together, as repeat_interleave does. --anyway (in Python: "
            f"anyway=True) judges it all the same."
        )


def is_inverted(code: Code | None, reading: Reading) -> bool:
    """Say whether padding changes what an encoder computes elsewhere, and tokens do not.

    Of the ids alone an encoder knows its padding: no design hides all else. This is asked of
    one that cannot be read, and of one whose own masks are not judged.
    """
    if code is None or reading.anyway or KEEP not in code.signature.parameters:
        return False
    try:
        with undisturbed():
            return _reached(built(code, torch.float64)) == (False, True)
    except Exception:  # code that a user wrote may raise anything: it is asked about elsewhere
        return False


def demand_tokens_seen(code: Code | None, reading: Reading) -> None:
    """Raise Unclear for an encoder that hides its tokens and sees its padding."""
    if code is not None and is_inverted(code, reading):
        raise Unclear(
            f"{code.name} sees its padding and hides its tokens: a change of a token reaches no "
            f"other place, and one of padding does. The mask that it makes of its ids is inverted. "
            f"--anyway (in Python: anyway=True) judges it all the same."
        )


def read_upright(
    stack: Code | None, reading: Reading, read: Callable[[Code, Reading], Read]
) -> Read | None:
    """Return an encoder whose own mask is inverted, as `read` has it if it were not.

    None for any other. Raises Unclear for one whose numbers are wrong all the same.
    """
    if stack is None or not is_inverted(stack, reading):
        return None
    try:
        with undisturbed():
            made = read(_upright(stack), reading)
    except Unclear:
        demand_tokens_seen(stack, reading)
        raise
    sentence = SENTENCE.format(stack.name)
    recipe = replace(made.recipes[stack.component], build=stack.build)
    understood = (made.understood[0], sentence, *made.understood[1:])
    return replace(
        made,
        recipes={stack.component: recipe},
        code=stack,
        fits=False,
        assumed=(sentence, *made.assumed),
        understood=understood,
    )


def _upright(code: Code) -> Code:
    """Return `code` with tokens and padding exchanged in its mask, as its author meant them."""

    def build(sizes: Sizes) -> Any:
        stack = code.build(sizes)
        stack.forward = partial(_exchanged, stack.forward)
        return stack

    return replace(code, build=build)


def _exchanged(
    call: Callable[..., Tensor], x: Tensor, keep: Tensor | None = None, **rest: Any
) -> Tensor:
    """Call a stack with padding where tokens are, and the other way round."""
    other = torch.zeros(x.shape[:2], dtype=torch.bool) if keep is None else ~keep
    return call(x, keep=other, **rest)


SENTENCE = (
    "the mask that {} makes of its ids is inverted: it hides the tokens, and not the padding; with "
    "both exchanged it has the numbers of the reference"
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
