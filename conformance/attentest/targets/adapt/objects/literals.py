"""Values that the files of a project give to an argument or a field by its name."""

import ast
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from attentest.targets.neighbours import file_of

_ROOT = (
    *(".git", "README.md", "README.rst", "README"),
    *("setup.py", "pyproject.toml", "requirements.txt"),
)
"""Files in the outermost folder of a project."""
_ABOVE = 3
"""The most folders between a file and the outermost one."""
_MOST, _LARGEST = 80, 200_000
"""The most files that are read, and the most bytes of one."""
_KINDS = {".py", ".yaml", ".yml", ".json"}
_LITERAL = r"(True|False|true|false|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|'[^'\n]*'|\"[^\"\n]*\")"
_FORMS = (
    r"(?<![\w.-])[\"']?{0}[\"']?\s*(?:=|:(?:\s*\w+\s*=)?)\s*" + _LITERAL + r"\s*(?=[,)\]}}#;\n]|$)",
    r"[\"']--{1}[\"'][^()]*default\s*=\s*" + _LITERAL,
)
_SWITCH = r"[\"']--{1}[\"'][^()]*store_(true|false)"


def literals_near(thing: Any, names: Collection[str]) -> dict[str, Any]:
    """Return the one value that the files of the project of `thing` give to each of the `names`.

    {} unless each has one. The nearest file with a value says it; one with several says none.
    """
    found: dict[str, Any] = {}
    own = file_of(thing)
    for name in names if own is not None else ():
        each = (_values(text, name) for text in _texts(own))
        values = next((one for one in each if one), set())
        if len(values) != 1:
            return {}
        found[name] = ast.literal_eval(next(iter(values)))
    return found


def _values(text: str, name: str) -> set[str]:
    """Return the literals that `text` gives to `name`, as code of Python."""
    words = re.escape(name), re.sub(r"[-_]", "[-_]", re.escape(name).replace(r"\-", "-"))
    given = [one for form in _FORMS for one in re.findall(form.format(*words), text)]
    switched = re.findall(_SWITCH.format(*words), text)
    given += [str(one == "false") for one in switched]
    return {one.capitalize() if one in ("true", "false") else one for one in given}


@lru_cache(maxsize=8)
def _texts(own: Path) -> tuple[str, ...]:
    """Return the texts of the files of a project, that of the file `own` first."""
    return tuple(_read(one) for one in _files(own))


def _files(own: Path) -> Iterator[Path]:
    yield own
    parents = [*own.parents][: _ABOVE + 1]
    roots = (one for one in parents if any((one / name).exists() for name in _ROOT))
    outer = next(one for one in own.parents if not (one / "__init__.py").exists())
    root = next(roots, outer)
    near = [one for one in sorted(root.rglob("*")) if one.suffix in _KINDS and one != own]
    near.sort(key=lambda one: one.parent != own.parent)
    yield from near[:_MOST]


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > _LARGEST:
            return ""
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
