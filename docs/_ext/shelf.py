"""Writes the pages of the implementations: what each folder holds, and what it declares."""

import json
import os
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tables import table

from attentest_spec import CHOICES, COMPONENTS, Backend, Choice, Limits

NOT_INSTALLED = """## What it declares

The library that it is for is not installed where this page was built; where it is,
`attentest explain` tells what it declares, provides and is limited to.
[What was found in it](../libraries.md)."""


@dataclass(frozen=True)
class Implementation:
    """A folder under implementations/: the backend it announces and the files it consists of.

    `backend` is None where the library that it is for is not installed.
    """

    name: str
    folder: Path
    title: str
    backend: Backend | None
    sources: tuple[Path, ...]


def found(root: Path) -> list[Implementation]:
    """Return every folder under implementations/ that announces a backend, in order of names."""
    paths = sorted(root.glob("implementations/*/pyproject.toml"))
    return [one for path in paths for one in _read(path.parent)]


def _read(folder: Path) -> Iterator[Implementation]:
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, value in project["entry-points"]["attentest.backends"].items():
        module, _, attribute = value.partition(":")
        package = folder / module.partition(".")[0]
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        lent = "library" in project.get("optional-dependencies", {})
        backend = _loaded(module, attribute, lent)
        title = backend.title if backend else _kept_title(folder, name) or project["description"]
        first = [package / "model.py", package / "backend.py"]
        ordered = [*first, *sorted(set(package.glob("*.py")) - set(first))]
        sources = tuple(path for path in ordered if path.is_file() and path.stat().st_size)
        yield Implementation(name, folder, title, backend, sources)


def _kept_title(folder: Path, name: str) -> str:
    """Return the title of a backend as it was when it was judged last, "" where it never was."""
    path = folder / "verdicts.json"
    kept = json.loads(path.read_text(encoding="utf-8"))["backends"] if path.exists() else {}
    return str(kept[name]["title"]) if name in kept else ""


def _loaded(module: str, attribute: str, lent: bool) -> Backend | None:
    """Return the backend; None for one whose library, which is `lent`, is not installed."""
    try:
        backend: Backend = getattr(import_module(module), attribute)
    except ModuleNotFoundError:
        if lent:
            return None
        raise
    return backend


def page(one: Implementation, here: Path) -> str:
    """Return the page of one implementation, which stands in the folder `here`."""
    readme = os.path.relpath(one.folder / "README.md", here)
    sources = "\n\n".join(_source(path, here) for path in one.sources)
    return f"""```{{include}} {readme}
```

{_declared(one, one.backend) if one.backend else NOT_INSTALLED}

{sources}
"""


def _declared(one: Implementation, backend: Backend) -> str:
    there = [f"`{name}`" for name in COMPONENTS if name in backend.components]
    missing = [f"`{name}`" for name in COMPONENTS if name not in backend.components]
    return f"""## What it declares

It goes by the name `{one.name}` and calls itself "{one.title}".

{_choices_of([one])}

## What it provides

{", ".join(there)}.

Not provided: {", ".join(missing) or "none"}.

## Its limits

{_limits_of(backend.limits)}"""


def _source(path: Path, here: Path) -> str:
    return f"""## {path.name}

```{{literalinclude}} {os.path.relpath(path, here)}
:language: python
```"""


def _limits_of(limits: Limits) -> str:
    usual = vars(Limits())
    rows = [(f"`{k}`", f"`{v}`") for k, v in vars(limits).items() if v != usual[k]]
    return table(["limit", "value"], iter(rows)) if rows else "None declared."


def _choices_of(several: Sequence[Implementation]) -> str:
    def row(choice: Choice) -> Iterator[str]:
        yield f"{{ref}}`{choice.name} <choice-{choice.name}>`"
        yield f"`{choice.paper}`" if choice.paper else "(silent)"
        for one in several:
            value = one.backend.choices.get(choice.name) if one.backend else None
            shown = "-" if value is None else f"`{_value(value)}`"
            yield f"**{shown}**" if value not in (None, choice.paper) and choice.paper else shown

    rows = (tuple(row(choice)) for choice in CHOICES.values())
    return table(["choice", "paper", *(f"{one.name}" for one in several)], rows)


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def overview(several: Sequence[Implementation]) -> str:
    """Return the page that lists all of them and sets their choices side by side."""
    names = "\n".join(one.name for one in several)
    told = table(
        ["name", "what it is"],
        ((f"[{one.name}]({one.name}.md)", one.title) for one in several),
    )
    loaded = [one for one in several if one.backend]
    return f"""# Implementations

Every folder under `implementations/` that announces a backend; the list is made when these pages
are built.

{told}

## Choices side by side

As declared; what differs from the paper is bold. A dash is what is not declared: the paper's, or
any option where the paper is silent. `attentest run` puts the same table below the matrix and says
which declarations the numbers bear out. Libraries that are not installed where these pages are
built have [a page of their own](../libraries.md).

{_choices_of(loaded)}

```{{toctree}}
:hidden:

{names}
```
"""
