"""Switches that hide later positions: whether they hide these, and no more.

With the switch on, the output at a position is that of the text up to there. Where it is off, that
is compared with what it gives if it is on.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.advice.causal_words import demand_documented
from attentest.targets.adapt.advice.own_order import mask_for_order
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.fillings import fixed
from attentest.targets.adapt.probing import SEQUENCES, SIZES, Given, Probe, undisturbed
from attentest.targets.adapt.reading import Reading, Uncovered

_ORDERS = re.compile(
    r"(is|use|apply|with)?_?(causal|autoregressive|unidirectional|look_?ahead)_?(mask|attention)?"
)
_SAME = 1e-5
"""The relative difference of outputs that rounding makes, in single precision also."""


def demand_order(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> None:
    """Raise Unclear where code is not causal, and its documentation or a switch is about that.

    A switch that is off has to hide later positions if it is on, and one that is on does.
    """
    demand_documented(code, adapter, reading)
    if adapter.causal or adapter.component not in ("attention", *SEQUENCES):
        return
    if "attention_causality" not in reading.choices and not reading.anyway:
        _demand_effect(code, probe, adapter, reading)
    for own, switched, called in _switched(code, probe, adapter):
        if own not in reading.given and (place := _other_place(probe, adapter, switched, called)):
            raise Uncovered(
                f"{code.name} is read with {own}=False{_source(code, own)}. With {own}=True its "
                f"output at position {place}, counted from 1, is not that of the text up to "
                f"there: it does not hide exactly the later positions. Either that is a mistake, "
                f"or {own} means something else. --give {own}=True (in Python: "
                f"given={{{own!r}: True}}) judges it with that, and --give {own}=False without."
            )


def _demand_effect(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> None:
    """Raise Unclear where a switch is on by default, and later positions are seen."""
    on = switches_on(code, probe, adapter, reading)
    if on and mask_for_order(probe, replace(adapter, needs_mask=())):
        return  # they are hidden without the mask that every call gets here
    if on and (place := _other_place(probe, adapter, probe, adapter)):
        raise Uncovered(
            f"{code.name} is read with {on[0]}=True, its default, and its output at position "
            f"{place}, counted from 1, is not that of the text up to there: it sees later "
            f"positions. Either that is a mistake, or {on[0]} means something else. --choice "
            f"attention_causality=built-in (in Python: choices={{'attention_causality': "
            f"'built-in'}}) judges it as causal, and --choice attention_causality=by-mask as it is."
        )


def switches_on(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> list[str]:
    """Return the switches about the order of positions that are on by default, and not given."""
    asked = [adapter.signature, *_constructor(code, probe)]
    turned = {*reading.given, *(code.construction.fillings if code.construction else ())}
    return [own for one in asked for own in _switches(one, True) if own not in turned]


def _constructor(code: Code, probe: Probe) -> list[inspect.Signature]:
    if code.construction is None or not isinstance(probe.built, nn.Module):
        return []
    return [inspect.signature(code.thing)]


def _switched(code: Code, probe: Probe, adapter: Adapter) -> Iterator[tuple[str, Probe, Adapter]]:
    """Yield each switch of a constructor or a call that is off, and what it is with that on."""
    carried, construction = adapter.arguments, code.construction
    for own in _switches(adapter.signature, False):
        fixed_too = {**carried.fixed, own: True}
        yield own, probe, replace(adapter, arguments=replace(carried, fixed=fixed_too))
    if construction is None or not isinstance(probe.built, nn.Module):
        return
    turned = [own for own, one in construction.fillings.items() if one.words == repr(False)]
    for own in _switches(inspect.signature(code.thing), False, turned):
        fillings = {**construction.fillings, own: fixed(True)}
        try:
            with undisturbed():
                built = _placed(code, replace(construction, fillings=fillings)(SIZES))
                built.to(probe.dtype).eval()
                built.load_state_dict(deepcopy(probe.built.state_dict()), strict=False)
        except Exception:  # code that a user wrote may raise anything
            continue
        yield own, replace(probe, built=built), adapter


def _placed(code: Code, whole: nn.Module) -> nn.Module:
    """Return what is judged of `whole`, which the constructor of `code` made."""
    part = code.inner(whole, SIZES) if code.inner is not None else whole
    return code.wrapper(part, SIZES) if code.wrapper is not None else part


def _switches(signature: inspect.Signature, default: bool, turned: Sequence[str] = ()) -> list[str]:
    """Return the switches about the order of positions with that default, and those `turned`."""
    return [
        own
        for own, one in signature.parameters.items()
        if (one.default is default or own in turned) and _ORDERS.fullmatch(own)
    ]


def _source(code: Code, own: str) -> str:
    """Return why a switch is off, in words behind its value: "" where nothing says so."""
    is_default = code.construction is None or own not in code.construction.fillings
    return ", its default" if is_default else ""


def _other_place(probe: Probe, adapter: Adapter, switched: Probe, called: Adapter) -> int:
    """Return the first position, from 1 on, with the output of another text; 0 for none."""
    given = probe.given(adapter, joined=True)
    role = "query" if "query" in given else "x"
    after = switched.called(called, given)
    if isinstance(after, str) or after.shape != given[role].shape:
        return 0
    for place in range(1, after.shape[-2] + 1):
        before = probe.called(adapter, _cut(given, role, place))
        if isinstance(before, str) or before.shape[-2] != place:
            return 0
        if not torch.allclose(after[..., place - 1, :], before[..., -1, :], _SAME, _SAME):
            return place
    return 0


def _cut(given: Given, role: str, length: int) -> Given:
    """Return `given` with the first positions alone of every input that is the text."""
    text: Tensor = given[role]
    return {name: text[..., :length, :] if one is text else one for name, one in given.items()}
