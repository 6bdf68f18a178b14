"""Writes the pages of the implementations: the files of each folder and its declarations."""

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

NOT_INSTALLED = """## Declarations

The library was not installed when this page was built. If it is installed, `attentest explain`
prints the choices, components and limits. [The results for this library](../libraries.md)."""


@dataclass(frozen=True)
class Implementation:
    """A folder under implementations/: its backend and its files.

    `backend` is None if its library is not installed.
    """

    name: str
    folder: Path
    title: str
    backend: Backend | None
    sources: tuple[Path, ...]


def implementations(root: Path) -> list[Implementation]:
    """Return every backend that a folder under implementations/ provides, in order of names."""
    paths = sorted(root.glob("implementations/*/pyproject.toml"))
    return [one for path in paths for one in _read(path.parent)]


def _read(folder: Path) -> Iterator[Implementation]:
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, value in project["entry-points"]["attentest.backends"].items():
        module, _, attribute = value.partition(":")
        package = folder / module.partition(".")[0]
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        optional = "library" in project.get("optional-dependencies", {})
        backend = _load(module, attribute, optional)
        title = backend.title if backend else _stored_title(folder, name) or project["description"]
        first = [package / "model.py", package / "backend.py"]
        ordered = [*first, *sorted(set(package.glob("*.py")) - set(first))]
        sources = tuple(path for path in ordered if path.is_file() and path.stat().st_size)
        yield Implementation(name, folder, title, backend, sources)


def _stored_title(folder: Path, name: str) -> str:
    """Return the title of a backend when it was judged last, "" if it never was."""
    path = folder / "verdicts.json"
    stored = json.loads(path.read_text(encoding="utf-8"))["backends"] if path.exists() else {}
    return str(stored[name]["title"]) if name in stored else ""


def _load(module: str, attribute: str, optional: bool) -> Backend | None:
    """Return the backend; None if its library is `optional` and not installed."""
    try:
        loaded = getattr(import_module(module), attribute)
    except ModuleNotFoundError:
        if optional:
            return None
        raise
    backend: Backend = loaded if isinstance(loaded, Backend) else loaded()
    return backend


def page(one: Implementation, here: Path) -> str:
    """Return the page of one implementation, relative to the folder `here`."""
    readme = os.path.relpath(one.folder / "README.md", here)
    sources = "\n\n".join(_source(path, here) for path in one.sources)
    return f"""```{{include}} {readme}
```

{_declared(one, one.backend) if one.backend else NOT_INSTALLED}

{sources}
"""


def _declared(one: Implementation, backend: Backend) -> str:
    provided = [f"`{name}`" for name in COMPONENTS if name in backend.components]
    missing = [f"`{name}`" for name in COMPONENTS if name not in backend.components]
    return f"""## Declarations

Name: `{one.name}`. Title: {one.title}.

{_choices_of([one])}

## Components

{", ".join(provided)}.

Not provided: {", ".join(missing) or "none"}.

## Limits

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
        yield f"`{choice.paper}`" if choice.paper else "(unspecified)"
        for one in several:
            value = one.backend.choices.get(choice.name) if one.backend else None
            shown = "-" if value is None else f"`{_value(value)}`"
            yield f"**{shown}**" if value not in (None, choice.paper) and choice.paper else shown

    rows = (tuple(row(choice)) for choice in CHOICES.values())
    return table(["choice", "paper", *(f"{one.name}" for one in several)], rows)


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def overview(several: Sequence[Implementation]) -> str:
    """Return the page that lists all implementations and compares their choices."""
    names = "\n".join(one.name for one in several)
    listed = table(
        ["name", "title"],
        ((f"[{one.name}]({one.name}.md)", one.title) for one in several),
    )
    loaded = [one for one in several if one.backend]
    return f"""# Implementations

All folders under `implementations/` that provide a backend. The list is generated when these pages
are built.

{listed}

## Choices

The declared options; those that differ from
[Vaswani et al. 2017](https://arxiv.org/abs/1706.03762) are bold. A dash means that nothing is
declared: the option of the paper, or any option if the paper does not specify one. `attentest run`
prints the same table below the matrix, and shows which declarations agree with the numbers.
Libraries that are not installed when these pages are built have [their own page](../libraries.md).

{_choices_of(loaded)}

```{{toctree}}
:hidden:

{names}
```
"""
