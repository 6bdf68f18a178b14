"""The numbers with names that a function or a class reads, in its file and in those around it."""

import ast
import dis
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import product
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from torch import nn

from attentest.targets.constants.copies import Copies, is_running
from attentest.targets.constants.source import LACKING, keys_of_files, lacking
from attentest.targets.constants.written import value_written

_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS")
_PARTS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_CONST")


def numbers_read(thing: Callable[..., Any]) -> dict[str, float]:
    """Return the numbers that `thing` reads from its module, with those that its parts read.

    A number is a name of the module, a key or an attribute of what has a name there, an attribute
    of a class of modules, or what a constructor looks up in a file of settings.
    """
    home = sys.modules.get(thing.__module__)
    if home is None or not getattr(home, "__file__", None):
        return {}
    reader = _Reader(Copies.folder(home))
    reader.follow(home, thing.__qualname__.partition(".")[0])
    with suppress(OSError, SyntaxError, ValueError):
        for key in keys_of_files(ast.parse(Path(str(home.__file__)).read_bytes())):
            written = value_written(thing, key)
            _note(reader.found, key, written[0] if written is not None else None)
    return reader.found


def numbers_of_process(thing: Callable[..., Any]) -> dict[str, float]:
    """Return the numbers that the function or class `thing` reads, where it can be no copy."""
    if not is_running(sys.modules.get(thing.__module__)):
        return {}
    found: dict[str, float] = {}
    seen: list[Any] = [thing]
    for one in seen:
        held = vars(one).values() if isinstance(one, type) else [one]
        for function in filter(inspect.isfunction, held):
            for name, part in _reads(function.__code__):
                value: Any = function.__globals__.get(name)
                _note(found, name, value)
                if inspect.isfunction(value) or isinstance(value, type):
                    own = value.__module__ == thing.__module__ and value not in seen
                    seen += [value] * own
                else:
                    _note(found, part, getattr(value, part or "_", None))
    return found


def numbers_of_file(thing: Callable[..., Any]) -> dict[str, float]:
    """Return the numbers that are names of the module of `thing`, and that its code reads."""
    home = sys.modules.get(thing.__module__, ModuleType(""))
    found = {own: value for own, value in vars(home).items() if type(value) in (int, float)}
    try:
        source = Path(getattr(home, "__file__", None) or "").read_bytes()
        read = {name for name, _ in _reads(compile(source, "", "exec"))}
    except (OSError, SyntaxError, ValueError):
        return found
    return {own: value for own, value in found.items() if own in read}


def numbers_lacking(module: ModuleType) -> list[str]:
    """Return the names that the classes of a module read, and that it has as a script alone."""
    try:
        source = Path(getattr(module, "__file__", None) or "").read_bytes()
        return [one for one in _assigned_names(source) if one not in vars(module)]
    except (OSError, SyntaxError, ValueError):
        return []


@lru_cache(256)
def _assigned_names(source: bytes) -> tuple[str, ...]:
    """Return the names that the classes of a source read and that it assigns."""
    return tuple(lacking(ast.parse(source), ()))


HEAD_WIDTH_CODE = "sizes.d_model // sizes.heads"
"""The expression of the width of a head."""


def contradiction(numbers: Mapping[str, float], sizes: Mapping[str, str]) -> str:
    """Return how the `numbers` give a head two widths, "" where they do not.

    `sizes` are the expressions that they stand for.
    """
    widths, heads, split = (
        [own for own, one in sizes.items() if one == code]
        for code in ("sizes.d_model", "sizes.heads", HEAD_WIDTH_CODE)
    )
    pairs = list(product(widths, heads))
    for own in split:
        if pairs and not any(numbers[a] == numbers[b] * numbers[own] for a, b in pairs):
            (width, head), *_ = pairs
            return (
                f"reads constants of the code as sizes, and they contradict each other: "
                f"{own}={numbers[own]}, and {width}={numbers[width]} over {head}={numbers[head]} "
                f"is another width of a head. That is a mistake in them, or one of them means "
                f"something else: say which with --argument SIZE=NAME, or leave it as it is with "
                f"--give {own}={numbers[own]}."
            )
    return ""


class _Reader:
    """Follows names from one to the next, below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seen: set[tuple[str, str]] = set()
        self.found: dict[str, float] = {}
        self.statements: dict[str, dict[str, list[tuple[str, str]]]] = {}

    def follow(self, module: ModuleType, name: str) -> None:
        """Note the number called `name` in `module`, and all that is read for it."""
        if name not in vars(module) and name in numbers_lacking(module):
            _note(self.found, name, LACKING)
        if (module.__name__, name) in self.seen or name not in vars(module):
            return
        self.seen.add((module.__name__, name))
        value = vars(module)[name]
        _note(self.found, name, value)
        if isinstance(value, type) and issubclass(value, nn.Module):
            for own, one in vars(value).items():
                _note(self.found, own, one)
        other = sys.modules.get(getattr(value, "__module__", None) or "")
        if callable(value) and other not in (None, module) and self._is_near(other):
            self.follow(other, value.__qualname__.partition(".")[0])
            return
        for read, part in self._statements(module).get(name, ()):
            self.follow(module, read)
            self._part(vars(module).get(read), part)

    def _part(self, held: Any, part: str) -> None:
        """Note the number `part` of what is `held`: a module, a dictionary or an object."""
        if isinstance(held, ModuleType):
            if self._is_near(held):
                self.follow(held, part)
        elif part:
            value = held.get(part) if isinstance(held, dict) else getattr(held, part, None)
            _note(self.found, part, value)

    def _is_near(self, module: ModuleType | None) -> bool:
        file = getattr(module, "__file__", None)
        place = Path(file or "/").resolve()
        return place.is_relative_to(self.root) and "site-packages" not in place.parts

    def _statements(self, module: ModuleType) -> dict[str, list[tuple[str, str]]]:
        """Return what each name of the file of `module` is made of."""
        if module.__name__ not in self.statements:
            self.statements[module.__name__] = {}
            with suppress(OSError, SyntaxError, ValueError):
                source = Path(str(module.__file__)).read_bytes()
                self.statements[module.__name__] = _statements_of(source)
        return self.statements[module.__name__]


@lru_cache(256)
def _statements_of(source: bytes) -> dict[str, list[tuple[str, str]]]:
    """Return what each name of a source is made of."""
    made: dict[str, list[tuple[str, str]]] = {}
    for one in ast.parse(source).body:
        code = compile(ast.Module([one], []), "", "exec")
        reads = list(_reads(code))
        for own in code.co_names:
            made.setdefault(own, []).extend(reads if own in _stored(code) else ())
    return made


def _note(found: dict[str, float], name: str, value: Any) -> None:
    if type(value) in (int, float):
        found.setdefault(name, value)


def _stored(code: CodeType) -> set[str]:
    return {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_NAME"}


def _reads(code: CodeType) -> Iterator[tuple[str, str]]:
    """Yield each name that is read, with the attribute or the key of it, "" for none."""
    steps = list(dis.get_instructions(code))
    for one, after in zip(steps, [*steps[1:], steps[-1]], strict=True):
        if one.opname in _LOADS:
            part = after.argval if after.opname in _PARTS else ""
            yield one.argval, part if isinstance(part, str) else ""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _reads(inner)
