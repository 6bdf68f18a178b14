"""Results of a decoder-only model that switches change: of training mode, and of arguments."""

from dataclasses import replace

from torch import Tensor, nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.calling import (
    Call,
    gives_logits,
    inputs_of,
    is_causal,
    probe_tokens,
    with_part,
)
from attentest.targets.language_models.surrounded.modules import signature_of

NOT_IN_TRAINING = (
    "steps with a cache are not judged: a call in training mode returns the logits alone"
)


def with_switch(model: nn.Module, plain: Call) -> tuple[Call, str] | None:
    """Return a call with the other value of one switch, where only with it there are logits.

    The second is the assumption on it. A loss is what some models return by default.
    """
    for own, one in signature_of(model).parameters.items():
        if not isinstance(one.default, bool) or own in plain.fixed or "loss" not in own:
            continue
        tried = replace(plain, fixed={**plain.fixed, own: not one.default})
        made = with_part(model, tried)
        if isinstance(made, Call) and gives_logits(model, made) and is_causal(model, made):
            return made, _SWITCHED.format(own, not one.default, one.default)
    return None


_SWITCHED = "assumed {}={} in every call: with {}, its default, a call returns no logits of tokens"


def with_training(model: nn.Module, call: Call) -> Call:
    """Return `call` for a model whose result is the logits alone where it is trained."""
    if call.part is None:
        return call
    before = model.training
    try:
        with undisturbed():
            result = model.train()(**inputs_of(call, probe_tokens(), model))
    except Exception:  # code that a user wrote may raise anything
        return call
    finally:
        model.train(before)
    return replace(call, bare=True) if isinstance(result, Tensor) else call
