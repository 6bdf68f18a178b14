"""Optional arguments of a call that get no value: nothing that depends on one is judged."""

import inspect
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attentest.targets.adapt import masks
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.advice.causal_switches import switches_on
from attentest.targets.adapt.advice.own_order import mask_for_order
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import EPSILON, KEY_WIDTH, MASKS, OFF, words
from attentest.targets.adapt.probing import Probe, keys_of
from attentest.targets.adapt.reading import Contrary, Reading

MOST = 4
"""The largest number of arguments that are named; more are counted."""

_INERT = (
    *OFF,
    *EPSILON,
    *KEY_WIDTH,
    *words("generator rng seed inplace verbose debug name averageattnweights"),
)
"""Names of arguments that are settings, or change no number that the spec describes."""

_RESULTS = re.compile(r"(return|need|output)[a-z]+")
"""The names of switches that ask for further results."""


def ungiven(signature: inspect.Signature, given: Collection[str]) -> Iterator[str]:
    """Yield the arguments with a default that are not in `given`, and may change what is computed.

    A number is a setting, and is judged as it is; 0 is a beginning, such as that of positions.
    """
    for own, one in signature.parameters.items():
        optional = one.default is not inspect.Parameter.empty and own not in given
        if optional and not (_is_setting(one.default) or _is_inert(squashed(own))):
            yield own


def sentence(names: Collection[str]) -> str:
    """Return that the arguments `names` are not given, in one phrase; "" for none."""
    if not names:
        return ""
    first, rest = list(names)[:MOST], len(names) - MOST
    more = f" and {rest} more" if rest > 0 else ""
    it = "it" if len(names) == 1 else "them"
    return f"not given: {', '.join(first)}{more}; nothing that depends on {it} is judged"


def ungiven_of(adapter: Adapter) -> str:
    """Return the sentence on the optional arguments that `adapter` never gives, "" for none."""
    carried = adapter.arguments
    used = {*carried.roles.values(), carried.padding, *carried.derived}
    used |= {*carried.fixed, *carried.computed, *carried.repeated}
    return sentence(list(ungiven(adapter.signature, used)))


def _is_setting(default: Any) -> bool:
    number = isinstance(default, int | float) and not isinstance(default, bool)
    return number and default != 0


def _is_inert(name: str) -> bool:
    return name in _INERT or "drop" in name or _RESULTS.fullmatch(name) is not None


def with_masks(adapter: Adapter) -> list[Adapter]:
    """Return `adapter`, and where masks must be given also those that give one."""
    return [adapter, *_giving(adapter, _masks_with(adapter, inspect.Parameter.empty))]


def with_optional_masks(adapter: Adapter) -> list[Adapter]:
    """Return `adapter` with masks whose default is None, for code that raises without them."""
    must = _masks_with(adapter, inspect.Parameter.empty)
    return [] if must else _giving(adapter, _masks_with(adapter, None))


def hides_all(probe: Probe, adapter: Adapter, given: Mapping[str, Any], keys: int) -> bool:
    """Say whether code whose masks must be given hides all positions where they are None.

    `np.where(None, scores, -1e9)` does, and raises nothing: None is false there.
    """
    needed = _masks_with(adapter, inspect.Parameter.empty)
    if adapter.needs_mask or not needed:
        return False
    without = probe.called(adapter, given)
    hidden = {
        **given,
        **{one: _hidden(adapter, one, keys) for one in given if one in MASKS},
    }
    for tried in _giving(adapter, needed):
        shown, unseen = probe.called(tried, given), probe.called(tried, hidden)
        if _alike(shown, without):
            return False
        if _alike(unseen, without):
            return True
    return False


def _hidden(adapter: Adapter, role: str, keys: int) -> Tensor:
    return torch.zeros((1, 1, 1, keys_of(adapter, role, keys)), dtype=torch.bool)


def _alike(one: Tensor | str, other: Tensor | str) -> bool:
    if isinstance(one, str) or isinstance(other, str) or one.shape != other.shape:
        return False
    return torch.allclose(one, other)


def needed_masks(adapter: Adapter) -> list[str]:
    """Return the assumption that masks are always given, which the signature does not demand."""
    optional = _masks_with(adapter, None)
    if not (names := [one for one in adapter.needs_mask if one in optional]):
        return []
    own = " and ".join(names)
    return [f"assumed that every call gives {own}: without, as its signature allows, it raises"]


def demand_default_object(name: str, probe: Probe, adapter: Adapter) -> None:
    """Raise Contrary where code makes the object of its mask by itself, and hides all with that.

    A mask of order that is used the wrong way round hides every position from the last one.
    """
    own = adapter.arguments.roles.get("mask", "")
    if own not in adapter.holders:
        return
    left = replace(adapter, needs_mask=[one for one in adapter.needs_mask if one != own])
    found = probe.called(left, probe.given(left, joined=True))
    if isinstance(found, Tensor) and not bool(found.isfinite().all()):
        raise Contrary(
            f"{name} gives no numbers for some position where its {own} is None: the mask that it "
            f"makes then, or the given one, is used the wrong way round."
        )


def always_given(
    code: Code, probe: Probe, adapter: Adapter, reading: Reading
) -> tuple[Adapter, list[str]]:
    """Return `adapter` with a mask that is always given, where a call without one has another.

    It has no default, and None hides later positions; or a switch that does is on by default.
    """
    own = mask_for_order(probe, adapter)
    if not own:
        return adapter, []
    said = _ALWAYS.format(own)
    if adapter.signature.parameters[own].default is not inspect.Parameter.empty:
        switches = [] if reading.strict else switches_on(code, probe, adapter, reading)
        if not switches:
            return adapter, []
        said = _SWITCHED.format(switches[0], own)
    return replace(adapter, needs_mask=(*adapter.needs_mask, own)), [said]


_ALWAYS = (
    "assumed that every call gives {}, which has no default: None in its place hides later "
    "positions"
)
_SWITCHED = (
    "assumed that {}=True, its default, hides later positions only where no {} is given, on "
    "purpose, and judged with a mask in every call: if both are to hide, this is a mistake"
)


def _giving(adapter: Adapter, needed: Sequence[str]) -> list[Adapter]:
    """Return `adapter` with the masks `needed` given in every form; empty where there are none."""
    roles = [role for role in MASKS if role in adapter.arguments.roles]
    roles += ["padding"] * bool(adapter.arguments.padding)
    return [
        replace(adapter, needs_mask=needed, styles=dict.fromkeys(roles, style))
        for style in masks.STYLES
        if needed and style.meaning in ("keep", "blocks", "lengths")
    ]


def _masks_with(adapter: Adapter, default: Any) -> list[str]:
    """Return the mask arguments whose default is `default`."""
    names = [own for role, own in adapter.arguments.roles.items() if role.endswith("mask")]
    return [own for own in names if adapter.signature.parameters[own].default is default]


def own_order(code: Code) -> str:
    """Return what is said of code that hides later positions: the masks that it is not given."""
    own = "it hides later positions by itself"
    if code.inner is None or not code.inner.stack:
        return own
    called = inspect.signature(getattr(code.thing, "forward", code.thing)).parameters
    left = [one for one in called if "mask" in one and one not in code.signature.parameters]
    if not left:
        return own
    return f"assumed that {own} on purpose: it is judged as causal, without {' and '.join(left)}"
