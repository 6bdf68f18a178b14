"""Plain values that the files around a class write for a name: in calls, tables and settings."""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from attentest.targets.imports.folders import project_of
from attentest.targets.neighbours import files_around, statements_of

_PLAIN = (bool, int, float, str)
_KINDS = (".yaml", ".yml", ".json", ".toml")
"""Endings of files of settings: each of their lines holds a name and a value."""

_MOST_FILES, _MOST_BYTES = 40, 100_000
"""Limits of the files of settings in one folder, and of the size of one."""


def value_written(thing: Any, name: str) -> tuple[Any, Path] | None:
    """Return the plain value that a file around `thing` writes for `name`, and that file.

    The file of `thing` is the first one, then those of settings, then other files of code. None
    where there is none; installed packages are not looked at.
    """
    own, *others = files_around(thing) or [Path()]
    folders = list(dict.fromkeys(one.parent for one in (own, *others)))
    named = [file for folder in folders for file in _files_of_settings(folder)]
    for file in dict.fromkeys([own, *named, *others]):
        found = _values(file)
        if name in found:
            return found[name], file
    return None


def numbers_of_settings(thing: Any) -> dict[str, Any]:
    """Return the numbers of the files of settings around `thing`, where its code reads such files.

    That is code which is in use, and names them; the nearest file of settings counts.
    """
    around = files_around(thing)
    held = {str(vars(one).get("__file__", "")) for one in list(sys.modules.values())}
    used = [one for one in around if str(one) in held]
    if not any(map(_reads_settings, used)):
        return {}
    named = {name for one in used for name in _names_in(one)}
    places = [one.parent for one in around]
    folders = dict.fromkeys([*places, *(project_of(one) for one in places[:1])])
    found: dict[str, Any] = {}
    for file in [one for folder in folders if folder for one in _files_of_settings(folder)]:
        values = _values(file).items()
        numbers = {key: one for key, one in values if type(one) in (int, float) and key in named}
        found = {**numbers, **found}
    return found


def _names_in(file: Path) -> Iterator[str]:
    """Yield the words of a file that may name what is looked up: keys, attributes and arguments."""
    for node in [one for statement in statements_of(file) for one in ast.walk(statement)]:
        match node:
            case ast.Constant(value=str() as word) | ast.Attribute(attr=word) | ast.arg(arg=word):
                yield word


def _reads_settings(file: Path) -> bool:
    """Say whether a file imports a module that reads files of settings."""
    nodes = [one for statement in statements_of(file) for one in ast.walk(statement)]
    names = [alias.name for one in nodes if isinstance(one, ast.Import) for alias in one.names]
    names += [one.module or "" for one in nodes if isinstance(one, ast.ImportFrom)]
    return not {*names}.isdisjoint(("yaml", "json", "toml", "tomllib"))


def _files_of_settings(folder: Path) -> list[Path]:
    """Return the files of settings in `folder`, and in those right below it for settings."""
    below = [one for one in _entries(folder) if one.is_dir() and "conf" in one.name.lower()]
    held = [one for place in (folder, *below) for one in _entries(place)]
    return [one for one in held if one.suffix in _KINDS][:_MOST_FILES]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


@lru_cache(maxsize=512)
def _values(file: Path) -> dict[str, Any]:
    """Return the plain values of a file by their names, the first one of each."""
    found: dict[str, Any] = {}
    pairs = _of_lines(file) if file.suffix in _KINDS else _of_code(file)
    for name, value in pairs:
        if type(value) in _PLAIN:
            found.setdefault(name, value)
    return found


_LINE = re.compile(r"""^\s*(?:- )?["']?(\w+)["']?\s*[:=]\s*(.+?)\s*,?\s*(?:#.*)?$""")


def _of_lines(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the tables, or of the lines, of a file of settings."""
    try:
        text = file.read_text()[:_MOST_BYTES]
    except (OSError, UnicodeDecodeError):
        return
    if file.suffix == ".json":
        with suppress(ValueError):
            yield from _of_tables(json.loads(text))
        return
    for line in text.splitlines():
        if found := _LINE.match(line):
            yield found[1], _read(found[2])


def _of_tables(held: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a table, and of those in it."""
    for name, value in held.items() if isinstance(held, dict) else ():
        yield name, value
        yield from _of_tables(value)


def _read(word: str) -> Any:
    """Return the value of a word, None for what is no plain one."""
    try:
        return json.loads({"True": "true", "False": "false"}.get(word, word))
    except ValueError:
        pass
    try:
        return float(word.replace("_", ""))
    except ValueError:
        plain = word.strip("\"'")
        return plain if re.fullmatch(r"[\w.-]+", plain) and plain not in ("null", "None") else None


def _of_code(file: Path) -> Iterator[tuple[str, Any]]:
    """Yield the names and plain values of arguments, keys, variables and fields of a file."""
    for node in [one for statement in statements_of(file) for one in ast.walk(statement)]:
        match node:
            case ast.Call():
                yield from ((one.arg, _literal(one.value)) for one in node.keywords if one.arg)
                yield from _of_option(node)
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                yield from ((str(_literal(key)), _literal(value)) for key, value in pairs if key)
            case ast.Assign():
                targets = [getattr(one, "attr", getattr(one, "id", "")) for one in node.targets]
                yield from ((one, _literal(node.value)) for one in targets if one)
            case ast.AnnAssign(target=ast.Name(id=own), value=ast.expr() as value):
                yield own, _literal(value)


def _of_option(call: ast.Call) -> Iterator[tuple[str, Any]]:
    """Yield the name and the default of an option of a command that a call adds."""
    if getattr(call.func, "attr", "") != argparse.ArgumentParser.add_argument.__name__:
        return
    names = [str(_literal(one)).lstrip("-").replace("-", "_") for one in call.args]
    defaults = [_literal(one.value) for one in call.keywords if one.arg == "default"]
    yield from ((name, value) for name in names for value in defaults)


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal, None for all else."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
