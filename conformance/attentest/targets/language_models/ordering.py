"""A mask of later tokens that the caller of a decoder-only model gives: the argument with it."""

from collections.abc import Collection, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest.targets.language_models.calling import Call, is_causal, probe_tokens
from attentest.targets.language_models.surrounded.modules import signature_of
from attentest.targets.single import widened

BY_CALLER = (
    "assumed that every call gets a mask of later tokens as {}: without it none is hidden, and if "
    "they are meant to be, this is a mistake"
)
_FLOATS = "next(model.parameters()).dtype"
_FORMS = (
    "seen",
    "~seen",
    f"torch.zeros(seen.shape, dtype={_FLOATS}).masked_fill(~seen, -torch.inf)",
    "seen.long()",
    f"seen.to({_FLOATS})",
)
_AXES = ("", "[None]", "[None, None]")
_OF_KEYS = ("torch.ones_like(tokens)", f"torch.ones(tokens.shape, dtype={_FLOATS})")


def with_order(model: nn.Module, call: Call, settled: Collection[str]) -> Call:
    """Return `call` with a mask of later tokens where only that hides them, else as it is.

    Arguments that are `settled` keep their values.
    """
    with widened():
        if is_causal(model, call):
            return call
        found = with_masks(model, call, settled)
        return next((one for one in found if is_causal(model, one)), call)


def with_masks(model: nn.Module, call: Call, settled: Collection[str] = ()) -> Iterator[Call]:
    """Yield `call` with a mask of later tokens in every argument and form."""
    for own in _masks(model, call, settled):
        yield from _tried(call, own)


def may_be_ordered(model: nn.Module, call: Call, settled: Collection[str]) -> bool:
    """Say whether an argument without a value may carry a mask of later tokens.

    It does not where such masks change nothing, nor where it takes masks of keys (B, T) alone.
    """
    with widened():
        plain = _answer(model, call)
        for own in _masks(model, call, settled):
            answers = [_answer(model, one) for one in _tried(call, own)]
            known = [one for one in answers if one is not None]
            keys = [_answer(model, replace(call, order=own, order_form=one)) for one in _OF_KEYS]
            if plain is None or not (known or any(one is not None for one in keys)):
                return True
            if not all(torch.equal(one, plain) for one in known):
                return True
    return False


def _masks(model: nn.Module, call: Call, settled: Collection[str]) -> Iterator[str]:
    """Yield the arguments that may hide later tokens, by a mask or where they are True."""
    for one in signature_of(model).parameters:
        name = squashed(one)
        if one in settled or "pad" in name or "head" in name:
            continue
        if "mask" in name or "causal" in name:
            yield one


def _tried(call: Call, own: str) -> Iterator[Call]:
    """Yield `call` with a mask of later tokens as the argument `own`, in the usual forms."""
    if "mask" not in squashed(own):
        yield replace(call, order=own, order_form="True")
        return
    for axes in _AXES:
        for form in _FORMS:
            yield replace(call, order=own, order_form=form.replace("seen", f"seen{axes}"))


def _answer(model: nn.Module, call: Call) -> Tensor | None:
    try:
        found = call.compiled()(model, probe_tokens())
    except Exception:  # code that a user wrote may raise anything
        return None
    return found if isinstance(found, Tensor) else None
