"""Halves of a packed map whose names in the code say the roles of each other."""

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


def exchanged_halves(module: object, table: Table) -> list[str]:
    """Return what is assumed of gates whose halves are named the other way round in the code."""
    if not isinstance(module, nn.Module):
        return []
    return list(dict.fromkeys(_exchanged(module, table)))


def _exchanged(module: nn.Module, table: Table) -> Iterator[str]:
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
