"""Decoder-only models with a head that the specification does not have, judged by their layers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.parameters.building import RATIOS
from attentest.targets.adapt.parameters.stacks import lists_of_layers
from attentest.targets.adapt.parameters.units import Unit, squeezed, units
from attentest.targets.adapt.reading import Reading, Unclear, Unexplained
from attentest.targets.language_models.calling import Call, is_causal, probe_tokens
from attentest.targets.language_models.inference import called
from attentest.targets.language_models.ordering import with_order
from attentest.targets.language_models.probing import probe_of, probe_sizes
from attentest.targets.language_models.recognition import is_language_model
from attentest.targets.single import widened
from attentest_spec import Backend, Sizes
from attentest_spec.torch.gradients import gradients

Read = Callable[[Reading], Backend]
"""Returns the backend that a class is read as."""

_DECODES = "is_decoder"

JUDGED = (
    "assumed that the head of {} is meant: between its layers and the logits it has {}, which "
    "maps states to states, and the spec has no such part. Its layers are judged; that it hides "
    "later tokens was measured"
)


def adapt_layers(question: Unclear, thing: Any, reading: Reading, name: str, read: Read) -> Backend:
    """Return the layers of a decoder-only model whose head is none of the specification.

    Raises the `question` about the whole where it has another head, or does not hide later tokens.
    """
    unread = isinstance(question, Unexplained) and not reading.component
    if not (unread and is_language_model(thing, reading, name)):
        raise question
    built, _, call = called(thing, name, reading)
    sizes = probe_sizes(built)
    model = probe_of(built, sizes)
    head = _head(model, sizes)
    with widened():
        call = with_order(model, call, reading.given)
        hides = not call.order and is_causal(model, call)
    if not (head and hides and _is_used(model, call, sizes)):
        raise question
    switched = f"{_DECODES}=True" in built.expression and _DECODES not in reading.given
    given = {**reading.given, **({_DECODES: True} if switched else {})}
    try:
        made = read(replace(reading, component="encoder", given=given))
    except Unclear:
        raise question from None
    said = JUDGED.format(name, head) + f", with {_DECODES}=True, as its name says" * switched
    first, *rest = getattr(made, "understood", ("",))
    assumed = (said, *getattr(made, "assumed", ()))
    return replace(made, assumed=assumed, understood=(first, said, *rest))  # type: ignore[type-var]


def _head(model: nn.Module, sizes: Sizes) -> str:
    """Return the first matrix (D, D) that is in none of the layers, "" for none."""
    square = (sizes.d_model, sizes.d_model)
    found = (one.path for one in _outside(model, sizes) if squeezed(one.shape) == square)
    return next(found, "")


def _outside(model: nn.Module, sizes: Sizes) -> Sequence[Unit]:
    """Return the modules with parameters that are in no layer, () where no layers are found."""
    own = units(model, sizes.heads)
    inner = (sizes.d_ff, *(ratio * sizes.d_model for ratio in RATIOS))
    every = (lists_of_layers(own, sizes.but(d_ff=one)) for one in inner)
    stacks = next(filter(None, every), [])
    if not stacks:
        return ()
    return [one for one in own if not any(held.holds(one) for held in stacks)]


def _is_used(model: nn.Module, call: Call, sizes: Sizes) -> bool:
    """Say whether the logits depend on every parameter that is in none of the layers."""
    with widened(), torch.enable_grad():
        logits = call.compiled()(model, probe_tokens())
    named = {name: one for name, one in model.named_parameters() if one.requires_grad}
    found = gradients(logits.square().sum(), list(named.values()))
    unused = [name for name, one in zip(named, found, strict=True) if one is None]
    outside = {name for one in _outside(model, sizes) for name in one.names}
    return outside.isdisjoint(unused)
