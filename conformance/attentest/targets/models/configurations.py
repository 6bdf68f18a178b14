"""Configuration objects of a whole model: expressions of the fields that its constructor reads."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from itertools import product
from typing import Any

import torch

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.fillings import filling_of
from attentest.targets.adapt.losses.names import LOSS_SIZES
from attentest.targets.adapt.names import ACTIVATION, EPSILON
from attentest.targets.adapt.objects.configuration import Fields, fields_read
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Reading
from attentest.targets.models.size_names import NO_TOKEN, is_factor, is_special_id

_MOST = 6
"""Limit of the fields of one configuration that nothing says."""

_MAY_BE_GROUPS = ("model", "embedding", "encoder", "decoder", "hidden", "attention")
"""Names of fields that say a size, and may be those of a configuration: `config["model"]`."""

_SWITCH = re.compile("(use|is|has|do|with|enable|allow)_")
"""The first words of names of switches."""

_ON = re.compile("pos(?!t)|sinus|mask|causal|resid|skipcon")
"""Words of switches that are on in the design of the paper."""


@dataclass
class Configurations:
    """The ways to make one configuration: `build` reads it, `fill` says its fields by their names.

    A field that nothing says is a configuration itself where fields of it are read, and a switch
    where its truth is asked for, and nothing else. `switches` are the expressions of those, and
    `groups` are fields that are configurations though their names say a size.
    """

    build: Callable[[Any], Any]
    fill: Callable[[str, Mapping[str, str]], str | None]
    value: Callable[[str], Any]
    switches: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)

    def expressions(self) -> Iterator[str]:
        """Yield the expressions, the likeliest first."""
        unknown = self._unknown()
        switches = [name for name, one in unknown.items() if one.asked and not one.found]
        for truths in product(*(_truths(name) for name in switches)):
            chosen = dict(zip(switches, truths, strict=True))
            for name, truth in chosen.items():
                unknown[name].truth = truth
            fields = self._read(unknown)
            said = [f"{name}={truth}" for name, truth in chosen.items()]
            self.switches += said
            groups = [f"{name}={_made(one)}" for name, one in unknown.items() if one.found]
            yield _made(fields, [*groups, *said])

    def without_switches(self, maker: str = "") -> tuple[str, list[str]]:
        """Return one expression that assumes no switch, and the fields that nothing says.

        It calls `maker` where that is a name.
        """
        groups = {name: one for name, one in self._unknown().items() if _holds(one)}
        fields = self._read(groups)
        within = [name for one in groups.values() for name in one.missing]
        held = [f"{name}={_made(one)}" for name, one in groups.items()]
        missing = list(dict.fromkeys([*fields.missing, *within]))
        return _made(fields, held, maker), missing

    def switched(self) -> dict[str, str]:
        """Return the switches that nothing says: names or the code say what they are.

        The code of one that it only stores asks for its truth later. They are off, but for those of
        what every design has.
        """
        return {
            name: str(_truths(name)[0])
            for name, one in self._unknown().items()
            if (one.asked or _SWITCH.match(name.lower())) and not _holds(one)
        }

    def _unknown(self) -> dict[str, Fields[str]]:
        """Return the stand-ins of the fields that nothing says, by their names."""
        unknown: dict[str, Fields[str]] = {}
        fields = self._read(unknown)
        while fields.lacking and fields.lacking not in unknown and len(unknown) < _MOST:
            unknown[fields.lacking] = self._stand_in()
            fields = self._read(unknown)
        for name in [one for one in _MAY_BE_GROUPS if one in fields.found]:
            self.groups.append(name)
            read = self._read({**unknown, name: (group := self._stand_in())})
            if group.found:
                unknown[name], fields = group, read
            else:
                self.groups.remove(name)
        return unknown

    def _stand_in(self) -> Fields[str]:
        return Fields(lambda name: self.fill(name, {}), self.value)

    def _read(self, unknown: Mapping[str, Fields[str]]) -> Fields[str]:
        def fill(name: str, known: Mapping[str, str]) -> str | None:
            return None if name in self.groups else self.fill(name, known)

        return fields_read(self.build, fill, self.value, unknown)


def _holds(one: Fields[str]) -> bool:
    """Say whether fields of `one` are read."""
    return bool(one.found or one.missing)


def _truths(name: str) -> tuple[bool, bool]:
    """Return the values of a switch, the likelier first."""
    on = is_usually_on(name)
    return on, not on


def is_usually_on(name: str) -> bool:
    """Say whether a switch is one of what every design has, by its name."""
    return _ON.search(squashed(name)) is not None


def _made(fields: Fields[str], more: list[str] | None = None, maker: str = "") -> str:
    held = [f"{name}={code}" for name, code in fields.found.items()]
    return f"{maker or fields.make.__name__}({', '.join([*held, *(more or [])])})"


def called_once(model: Any) -> None:
    """Call `model` with token ids: some fields of a configuration are read in the call alone."""
    taken = signature(model.forward).parameters.values()
    required = [one for one in taken if one.default is Parameter.empty]
    model(*[torch.ones(2, 5, dtype=torch.int64) for _ in required])


def usual(name: str) -> str | None:
    """Return the expression of a setting that is no size, None for one that nothing says."""
    required = Parameter(name, Parameter.KEYWORD_ONLY)
    if squashed(name) in EPSILON:
        return "1e-6"
    if is_factor(squashed(name)):
        return "4"
    if "smooth" in squashed(name) and squashed(name) in LOSS_SIZES:
        return "0.0"  # its loss is judged by itself
    if is_special_id(squashed(name)):
        return NO_TOKEN
    if squashed(name) in ACTIVATION:
        return repr("relu")  # in settings it is the key of a table, or the name of a function
    found = filling_of(name, required, "model", Reading(), ())
    return None if found is None or found.code else repr(found.value(DISTINCT))
