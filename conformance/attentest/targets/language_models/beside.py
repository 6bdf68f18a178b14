"""Parameters beside the logits of a decoder-only model: those of further results and inputs."""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.parameters.telling import few
from attentest.targets.language_models.argument_names import caches_named
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.surrounded.modules import signature_of
from attentest.targets.models.results import parts_of
from attentest.targets.single import widened
from attentest_spec.torch.gradients import gradients


def question_on_others(
    name: str, model: nn.Module, call: Call, ungiven: Collection[str], targets: str = ""
) -> str:
    """Return the question on trained parameters that the logits do not depend on, "" for none.

    They are those of another result, or they may be those of `ungiven`, the arguments that get no
    value. Parameters that nothing depends on are a mistake, and are no question: `targets` is the
    argument of labels, for which a loss may be returned, switches are called with the other value,
    and a cache holds what was computed of tokens.
    """
    with widened(), torch.enable_grad():
        logits = call.compiled()(model, probe_tokens())
        rest = _without(logits, model)
        if not rest:
            return ""
        tokens = probe_tokens().T if call.sequence_first else probe_tokens()
        labels = {call.labels: tokens} if call.labels else {}
        plain = {call.tokens: tokens, **labels, **call.fixed}
        without = set(_without(_results(model, plain), model))
        more: dict[str, Any] = {targets: tokens} if targets else {}
        more |= {own: value for own, value in _switches(model).items() if own in ungiven}
        for own, value in more.items():
            if answered := _results(model, {**plain, own: value}):
                without &= set(_without(answered, model))
                ungiven = [one for one in ungiven if one != own]
        caches = caches_named(signature_of(model).parameters)
        ungiven = [one for one in ungiven if one not in caches]
    others = [one for one in rest if one not in without]
    if others:
        return (
            f"{name} trains {few(others)} beside the logits, for another result of its call: the "
            f"spec has no place for them. Name a class that returns the logits alone."
        )
    if ungiven:
        return (
            f"{name} trains {few(rest)}, and its logits depend on none of them without "
            f"{few(ungiven)}: either they are those of that input, which the spec does not have, "
            f"or nothing depends on them, which is a mistake."
        )
    return ""


def _switches(model: nn.Module) -> dict[str, bool]:
    """Return the other values of the switches of a call."""
    parameters = signature_of(model).parameters.values()
    return {one.name: not one.default for one in parameters if type(one.default) is bool}


def unused_of(model: nn.Module, call: Call) -> str:
    """Return the sentence on trained parameters that the logits do not depend on, "" for none."""
    with widened(), torch.enable_grad():
        rest = _without(call.compiled()(model, probe_tokens()), model)
    if not rest:
        return ""
    verb, them = ("is", "it") if len(rest) == 1 else ("are", "them")
    return (
        f"{few(rest)} {verb} held and not used: nothing that it returns depends on {them}, and "
        f"it has the numbers of the reference without {them}"
    )


def _results(model: nn.Module, given: Mapping[str, Any]) -> list[Tensor]:
    """Return the tensors that a call returns and that are trained, [] for a call that fails."""
    try:
        return [one for _, one, _ in parts_of(model(**given)) if one.requires_grad]
    except Exception:  # code that a user wrote may raise anything
        return []


def _without(results: Tensor | list[Tensor], model: nn.Module) -> list[str]:
    """Return the trained parameters that no number of `results` depends on."""
    several = [results] if isinstance(results, Tensor) else results
    if not all(one.requires_grad for one in several) or not several:
        return []
    trained: Mapping[str, Tensor] = {
        name: one for name, one in model.named_parameters() if one.requires_grad
    }
    total = torch.stack([one.sum() for one in several]).sum()
    found = gradients(total, list(trained.values()))
    return [name for name, one in zip(trained, found, strict=True) if one is None]
