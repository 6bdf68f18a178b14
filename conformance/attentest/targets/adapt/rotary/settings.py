"""Settings that a class of rotary positions is built with: the class that has the fields it reads.

An object that has nothing but sizes is tried first. Where the constructor reads more of it, such as
a dictionary of the kind and the base of the frequencies, the class of settings is built.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction, construction
from attentest.targets.adapt.objects.settings import settings_assumed, settings_classes
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.rotary.signatures import (
    SCALING,
    Arguments,
    built_with,
    role_of,
)
from attentest_spec import Sizes

_SIZED_AS = "multi_head_attention"
"""The component whose sizes the fields of such settings are: a width, heads, and a length."""

_KIND = re.compile(r"(rope|rotary|scaling)?_?(type|kind)")
"""Names of fields that say how the frequencies are scaled."""

_UNSCALED = ("default", "none", "")
"""The values of such a field under which they are not."""


@dataclass(frozen=True)
class Settings:
    """The class of settings that `thing` gets as its argument `own`, and how it is built."""

    made: Construction
    words: str
    assumed: str

    def __call__(self, sizes: Sizes) -> Any:
        """Return the object for `sizes`."""
        return self.made(sizes)

    def bases(self, sizes: Sizes) -> list[float]:
        """Return the bases among its fields."""
        found = [value for name, value in _fields(self(sizes)) if role_of(name) == "base"]
        return [float(one) for one in found if _is_number(one)]

    def scaling(self, sizes: Sizes) -> list[str]:
        """Return the fields that scale the frequencies."""
        return [
            name
            for name, value in _fields(self(sizes))
            if (_KIND.fullmatch(name) and isinstance(value, str) and value not in _UNSCALED)
            or (SCALING.fullmatch(squashed(name)) and _is_number(value) and value != 1)
        ]


def with_settings(thing: Any, made: Arguments, reading: Reading, sizes: Sizes) -> Arguments:
    """Return the arguments of the constructor of `thing` with the settings that it needs.

    They are what they were where it is built with sizes alone, and where no class of settings, or
    several, have the fields that it reads.
    """
    own = made.roles.get("config", "")
    if not own or own in reading.given or _builds(thing, made, sizes):
        return made
    for one in _classes(thing, own):
        try:
            found = construction(one, _SIZED_AS, Reading())
        except Unclear:
            continue
        assumed = "" if _annotation(thing, own) is one else settings_assumed(thing, own, one)
        words = f"{own} is a {one.__name__}({found.words})"
        settled = made.with_settings(Settings(found, words, assumed))
        if _builds(thing, settled, sizes):
            return settled
    return made


def _classes(thing: Any, own: str) -> list[type]:
    """Return the class of the annotation, or else the one that has the fields that are read."""
    annotated = _annotation(thing, own)
    is_written = annotated is not inspect.Parameter.empty
    if is_written and inspect.isclass(annotated) and annotated.__module__ != "builtins":
        return [annotated]
    found = list(settings_classes(thing, own))
    return found if len(found) == 1 else []


def _annotation(thing: Any, own: str) -> Any:
    return inspect.signature(thing).parameters[own].annotation


def _builds(thing: Callable[..., Any], made: Arguments, sizes: Sizes) -> bool:
    try:
        with undisturbed():
            thing(**built_with(made, sizes))
    except Exception:  # code that a user wrote may raise anything
        return False
    return True


def _fields(settings: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of settings, and those of the dictionaries among them."""
    held = settings if isinstance(settings, Mapping) else getattr(settings, "__dict__", {})
    for name, value in held.items():
        yield str(name), value
        if isinstance(value, Mapping):
            yield from ((str(inner), one) for inner, one in value.items())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
