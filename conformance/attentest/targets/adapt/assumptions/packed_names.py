"""Packed maps whose parts are named in the code as other parts than the numbers show."""

import inspect
import re
from collections.abc import Iterator
from typing import TypeGuard

from torch import nn

from attentest.targets.adapt.parameters.words import feed_forward_role
from attentest_spec import Place, Table

_SENTENCE = (
    "assumed that {inner} is the gate of {owner}, as the activation shows, though another half of "
    "{packed} is called {gate} in the code: a mistake if that one is meant"
)
_HALVES = re.compile(
    r"^\s*(\w+)\s*,\s*(\w+)\s*=[^=].*\b(?:chunk|split|tensor_split|unbind)\(", re.MULTILINE
)
_SPANS = ("query", "key", "value")
_ORDER = (
    "assumed that {name} holds {order}, one after the other, as the numbers show: a mistake if "
    f"{', '.join(_SPANS)} is meant"
)


def exchanged(module: object, table: Table) -> list[str]:
    """Return what is assumed of parts of packed maps that are not those that names say.

    These are halves of which the one that is activated is not the one called gate, and queries,
    keys and values in another order than the usual one.
    """
    halves = _exchanged_halves(module, table) if isinstance(module, nn.Module) else ()
    return list(dict.fromkeys([*halves, *_exchanged_spans(table)]))


def _exchanged_spans(table: Table) -> Iterator[str]:
    roles: dict[str, dict[int, str]] = {}
    for name, place in table.items():
        role = name.removesuffix(".weight").rpartition(".")[2]
        if isinstance(place, Place) and role in _SPANS and (number := _third(place)) is not None:
            roles.setdefault(place.name.removesuffix(".weight"), {})[number] = role
    for packed, found in roles.items():
        order = [found.get(number, "") for number in range(len(_SPANS))]
        is_named = "".join(one[:1] for one in order) in packed.rpartition(".")[2].lower()
        if sorted(order) == sorted(_SPANS) and order != [*_SPANS] and not is_named:
            yield _ORDER.format(name=packed, order=", ".join(order))


def _third(place: Place) -> int | None:
    """Return which third of a packed parameter a place is, None for other places."""
    if place.span:
        return _SPANS.index(place.span)
    return place.part[0] if place.part and place.part[1] == len(_SPANS) else None


def _exchanged_halves(module: nn.Module, table: Table) -> Iterator[str]:
    modules = dict(module.named_modules())
    for name, gate in table.items():
        role = re.search(r"(?:^|\.)(gate)(?:\.weight)?$", name)
        inner = role and table.get(name[: role.start(1)] + "inner" + name[role.end(1) :])
        if not (_is_half(gate) and _is_half(inner) and gate.name == inner.name):
            continue
        path, _, packed = gate.name.replace("*", "0").removesuffix(".weight").rpartition(".")
        owner = modules.get(path)  # a table may be that of more layers
        halves = _halves(owner) if owner is not None else ()
        first_is_gate = gate.part == (0, 2)
        if [feed_forward_role(one) for one in halves] == (
            ["inner", "gate"] if first_is_gate else ["gate", "inner"]
        ):
            named = sorted(halves, key=feed_forward_role)
            holder = type(owner).__name__
            yield _SENTENCE.format(gate=named[0], inner=named[1], packed=packed, owner=holder)


def _is_half(place: object) -> TypeGuard[Place]:
    return isinstance(place, Place) and place.part in ((0, 2), (1, 2))


def _halves(owner: nn.Module) -> tuple[str, ...]:
    """Return the names that the call of `owner` gives two halves of a value, () for no such."""
    try:
        found = _HALVES.findall(inspect.getsource(type(owner).forward))
    except (OSError, TypeError):
        return ()
    return found[0] if len(found) == 1 else ()
