"""Configuration objects: the fields that a constructor reads, and what each of them gets."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

F = TypeVar("F")


@dataclass
class Fields(Generic[F]):
    """Stands for a configuration while a class is built, and writes down what is read of it.

    `fill` returns the filling of a field by its name, None for a field that nothing says;
    `value` what a filling gives. A field that is None is not there, as for `hasattr`, unless it is
    one of `unknown`, the stand-ins of fields that have to be there. `asked` is True where the truth
    of a stand-in was asked for: it is a switch, and `truth` is the answer; `compared` says that it
    was compared with something else. `lacking` is the field without which what is built cannot be.
    `handed` are the fields that are handed on by `**`, next to those that are read before.
    """

    fill: Callable[[str], F | None]
    value: Callable[[F], Any]
    found: dict[str, F] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    by_key: bool = False
    unknown: Mapping[str, "Fields[F]"] = field(default_factory=dict)
    truth: bool = True
    asked: bool = False
    compared: bool = False
    lacking: str = ""
    handed: Iterable[str] = ()
    unpacked: bool = False

    def __bool__(self) -> bool:
        self.asked = True
        return self.truth

    def __eq__(self, other: object) -> bool:
        if isinstance(other, bool):  # `before == self.normalize_before` asks for the truth
            return bool(self) == other
        self.compared = True
        return self is other

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._read(name, AttributeError)

    def __getitem__(self, name: str) -> Any:
        self.by_key = True
        return self._read(name, KeyError)

    def __contains__(self, name: str) -> bool:
        self.by_key = True
        return self.fill(name) is not None

    def __copy__(self) -> "Fields[F]":
        return self  # what is read of a copy is read of it

    def __deepcopy__(self, memo: dict[int, Any]) -> "Fields[F]":
        return self

    def get(self, name: str, default: Any = None) -> Any:
        """Return the field `name` as a dictionary does."""
        self.by_key = True
        return default if self.fill(name) is None else self._read(name, KeyError)

    def keys(self) -> list[str]:
        """Return the fields that a dictionary of settings has where it is unpacked."""
        self.by_key = self.unpacked = True
        return list(dict.fromkeys((*self.found, *self.handed)))

    def items(self) -> list[tuple[str, Any]]:
        """Return the fields with their values, as a dictionary does."""
        return [(name, self[name]) for name in self.keys()]

    def copy(self) -> "Fields[F]":
        """Return itself, as `copy.copy` does of it."""
        self.by_key = True
        return self

    def _read(self, name: str, error: type[Exception]) -> Any:
        filling = self.fill(name)
        if filling is None and name in self.unknown:
            return self.unknown[name]
        if filling is None:
            self.missing.append(name)
            raise error(name)
        self.found[name] = filling
        return self.value(filling)

    @property
    def is_kept(self) -> bool:
        """Whether nothing was read or asked of it: it is put somewhere, and no more."""
        return not (self.found or self.missing or self.asked or self.compared)

    @property
    def make(self) -> Callable[..., Any]:
        """The function that makes a configuration of the same access out of fields."""
        return dict if self.by_key else SimpleNamespace


def fields_read(
    build: Callable[[Any], Any],
    fill: Callable[[str, Mapping[str, F]], F | None],
    value: Callable[[F], Any],
    unknown: Mapping[str, Fields[F]] | None = None,
) -> Fields[F]:
    """Return the fields that `build` reads of the configuration that it is given.

    `fill` is also given the fields that are known: a name may mean another size beside them.
    """
    known: dict[str, F] = {}
    handed: dict[str, None] = {}
    while True:
        fields = Fields(partial(_filled, fill, known), value, unknown=unknown or {}, handed=handed)
        required: list[str] = []
        try:
            build(fields)
        except Exception as failure:  # code that a user wrote may raise anything: reported later
            named = failure.args[0] if isinstance(failure, LookupError | AttributeError) else ""
            fields.lacking = named if named in fields.missing else ""
            if fields.unpacked:
                required = [one for one in _required(failure) if one not in handed]
        if fields.found.keys() <= known.keys() and not required:
            return fields
        handed |= dict.fromkeys(required)
        known |= fields.found


def _required(failure: Exception) -> list[str]:
    """Return the names without which a call fails, as its error says them.

    These are arguments, or fields of a copy of the settings: `dict(settings)` has those that it is
    handed, and is read later.
    """
    if isinstance(failure, KeyError):
        return [one for one in failure.args if isinstance(one, str) and one.isidentifier()]
    if isinstance(failure, AttributeError):
        return re.findall(r"has no attribute '([a-z]\w*)'", str(failure))
    _, required, names = str(failure).partition(" required ")
    return re.findall(r"'(\w+)'", names) if required else []


def _filled(
    fill: Callable[[str, Mapping[str, F]], F | None], known: Mapping[str, F], name: str
) -> F | None:
    return fill(name, known)


def holds_settings(thing: type) -> bool:
    """Say whether a class is one of fields: a data class, or a model of pydantic.

    A data class whose attributes have no annotation has none that it could be made with.
    """
    if dataclasses.is_dataclass(thing):
        return bool(dataclasses.fields(thing))
    return isinstance(getattr(thing, "model_fields", None), Mapping)
