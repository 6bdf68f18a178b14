"""Writes the generated pages: chapters, clauses, choices, components, implementations, reference.

Knows nothing of Sphinx; everything is read from the spec, the suite's command and schema, and the
folders under implementations/.
"""

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

import attentest
from attentest.cli import main as command
from attentest_spec import CHOICES, COMPONENTS, Backend, Choice, Choices, Clause, Limits, Sizes
from attentest_spec.clauses import chapter_text, clauses
from attentest_spec.components import CHAPTERS
from attentest_spec.parameters import shapes

NOT_INSTALLED = """## What it declares

The library that it is for is not installed where this page was built; `attentest explain` tells
what it declares, provides and is limited to where it is."""
GIVEN = "d_model 6, heads 2, d_ff 10, one layer, vocabularies 11 and 13"


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


def version() -> str:
    """Return the version of the suite, which all packages share."""
    return attentest.__version__


def write(root: Path, out: Path) -> list[Path]:
    """Write every generated page of the repository at `root` into an emptied `out`."""
    shutil.rmtree(out, ignore_errors=True)
    found = implementations(root)
    texts = {
        "clauses.md": _clauses_page(),
        "choices.md": _choices_page(),
        "components.md": _components_page(),
        "commands.md": _commands_page(),
        "records.md": _records_page(),
        "implementations/index.md": _implementations_page(found),
    }
    texts |= {
        f"chapters/{chapter}.md": _chapter_page(root, out / "chapters", chapter)
        for chapter in CHAPTERS
    }
    texts |= {
        f"implementations/{one.name}.md": _implementation_page(one, out / "implementations")
        for one in found
    }
    return [_written(out / name, text) for name, text in texts.items()]


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.strip() + "\n", encoding="utf-8")
    return path


def table(head: Sequence[str], rows: Iterator[Sequence[object]]) -> str:
    """Return a Markdown table; a bar inside a cell would end it, so it is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


# The spec ------------------------------------------------------------------------------------


def _chapter_page(root: Path, here: Path, chapter: str) -> str:
    """Return the chapter with a target before every clause, and its oracle behind it."""
    text = re.sub(r"^### (\S+)$", r"(\1)=\n### `\1`", chapter_text(chapter), flags=re.MULTILINE)
    mistakes = f"Right and wrong as pictures: [the commonest mistakes](../mistakes/{chapter}.md)."
    text = re.sub(r"\A(# .*\n)", rf"\1\n{mistakes}\n", text)
    oracle = os.path.relpath(root / "spec" / "attentest_spec" / f"{chapter}.py", here)
    return f"""{text}
## The oracle

NumPy in float64, written from the formulas above; `attentest_spec/{chapter}.py`.

```{{literalinclude}} {oracle}
:language: python
```
"""


def _clauses_page() -> str:
    all_of_them = clauses().values()
    musts = sum(one.level == "MUST" for one in all_of_them)
    parts = [
        "# Clauses",
        f"{len(all_of_them)} clauses in {len(CHAPTERS)} chapters: {musts} say MUST, "
        f"{len(all_of_them) - musts} say SHOULD. `attentest explain SLUG` tells one of them with "
        "its reason and its source.",
    ]
    for chapter in CHAPTERS:
        rows = (_clause_row(one) for one in all_of_them if one.chapter == chapter)
        parts += [
            f"## {chapter}",
            f"[The whole chapter](chapters/{chapter}.md)",
            table(["clause", "component", "depth", "text"], rows),
        ]
    return "\n\n".join(parts)


def _clause_row(clause: Clause) -> tuple[str, ...]:
    component = f"`{clause.component}`"
    return f"{{ref}}`{clause.slug} <{clause.slug}>`", component, clause.depth, clause.text


def _choices_page() -> str:
    return "\n\n".join(
        [
            "# Choices",
            "Honest implementations differ here. A backend declares its options; what it leaves "
            "out is the paper's, and where the paper is silent any option passes.",
            *(_choice_section(choice) for choice in CHOICES.values()),
        ]
    )


def _choice_section(choice: Choice) -> str:
    options = (
        (f"`{one.name}`", one.meaning, "the paper's" if one.name == choice.paper else "")
        for one in choice.options
    )
    rows = [*options, *([("a number", choice.number, "")] if choice.number else [])]
    silent = "" if choice.paper else f"\n\nThe paper is silent; undeclared means `{choice.first}`."
    return f"""(choice-{choice.name})=
## {choice.name}

{choice.question} {choice.why}

{table(["option", "meaning", ""], iter(rows))}{silent}

Judged by {{ref}}`{choice.clause} <{choice.clause}>`. Source: {choice.source}."""


def _components_page() -> str:
    parts = [
        "# Components and canonical parameters",
        "Only NumPy arrays cross the contract: batch first, token ids int64, masks boolean with "
        "True = may be attended, linear weights as (out, in). A component's parameters are known "
        "by canonical names; the parameter map of a backend leads from them to its own.",
        f"The shapes below are those at {GIVEN}, with projection biases.",
    ]
    return "\n\n".join([*parts, *(_component_section(name) for name in COMPONENTS)])


def _component_section(name: str) -> str:
    component = COMPONENTS[name]
    lines = [f"## {name}", f"Inputs: {', '.join(f'`{one}`' for one in component.inputs)}."]
    lines += [f"Methods: {', '.join(f'`{one}`' for one in component.methods)}."] * bool(
        component.methods
    )
    lines += [f"Contains: {', '.join(f'`{one}`' for one in component.contains)}."] * bool(
        component.contains
    )
    held = shapes(name, Sizes(layers=1), Choices(projection_bias="present"))
    rows = ((f"`{key}`", f"`{shape}`") for key, shape in held.items())
    lines += [table(["canonical parameter", "shape"], rows)] if held else ["No parameters."]
    return "\n\n".join([*lines, f"Chapter: [{component.chapter}](chapters/{component.chapter}.md)"])


# The implementations ---------------------------------------------------------------------------


def implementations(root: Path) -> list[Implementation]:
    """Return every folder under implementations/ that announces a backend, in order of names."""
    found = (_read(path.parent) for path in sorted(root.glob("implementations/*/pyproject.toml")))
    return [one for several in found for one in several]


def _read(folder: Path) -> Iterator[Implementation]:
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, value in project["entry-points"]["attentest.backends"].items():
        module, _, attribute = value.partition(":")
        package = folder / module.partition(".")[0]
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        lent = "library" in project.get("optional-dependencies", {})
        backend = _loaded(module, attribute, lent)
        title = backend.title if backend else project["description"]
        first = [package / "model.py", package / "backend.py"]
        ordered = [*first, *sorted(set(package.glob("*.py")) - set(first))]
        sources = tuple(path for path in ordered if path.is_file() and path.stat().st_size)
        yield Implementation(name, folder, title, backend, sources)


def _loaded(module: str, attribute: str, lent: bool) -> Backend | None:
    """Return the backend; None for one whose library, which is `lent`, is not installed."""
    try:
        backend: Backend = getattr(import_module(module), attribute)
    except ModuleNotFoundError:
        if lent:
            return None
        raise
    return backend


def _implementation_page(one: Implementation, here: Path) -> str:
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
            shown = "undeclared" if value is None else f"`{_value(value)}`"
            yield f"**{shown}**" if value not in (None, choice.paper) and choice.paper else shown

    rows = (tuple(row(choice)) for choice in CHOICES.values())
    return table(["choice", "paper", *(f"{one.name}" for one in several)], rows)


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _implementations_page(found: Sequence[Implementation]) -> str:
    names = "\n".join(one.name for one in found)
    told = table(
        ["name", "what it is"],
        ((f"[{one.name}]({one.name}.md)", one.title) for one in found),
    )
    loaded = [one for one in found if one.backend]
    return f"""# Implementations

Every folder under `implementations/` that announces a backend; the list is made when these pages
are built.

{told}

## Choices side by side

As declared; what differs from the paper is bold. `attentest run` puts the same table below the
matrix and says which declarations the numbers bear out. Implementations whose library is not
installed where these pages are built are left out.

{_choices_of(loaded)}

```{{toctree}}
:hidden:

{names}
```
"""


# The suite's command and stream ------------------------------------------------------------------


def _commands_page() -> str:
    assert isinstance(command, click.Group)
    parts = ["# Commands and their options"]
    with click.Context(command, info_name="attentest", max_content_width=88) as context:
        for name, one in command.commands.items():
            with click.Context(one, info_name=name, parent=context, max_content_width=88) as inner:
                parts += [f"## attentest {name}", f"```text\n{one.get_help(inner)}\n```"]
    return "\n\n".join(parts)


def _records_page() -> str:
    schema = json.loads(
        files("attentest").joinpath("stream.schema.json").read_text(encoding="utf-8")
    )
    parts = ["# Lines of the stream", schema["description"]]
    for name, record in schema["$defs"].items():
        parts += [f"## {name}"]
        parts += [_fields(record)] if record.get("type") == "object" else [_allowed(record)]
    return "\n\n".join(parts)


def _fields(record: dict[str, Any]) -> str:
    required = record.get("required", [])
    rows = (
        (
            f"`{name}`",
            _kind(value),
            "" if name in required else "optional",
            value.get("description", ""),
        )
        for name, value in record["properties"].items()
    )
    return table(["field", "type", "", "meaning"], rows)


def _kind(value: dict[str, Any]) -> str:
    """Return the type of a field in a few words."""
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return _allowed(value)
    if "$ref" in value:
        return f"a {value['$ref'].rpartition('/')[2]}"
    kinds = value.get("type", "any")
    told = kinds if isinstance(kinds, str) else " or ".join(kinds)
    inner = value.get("items") or value.get("properties")
    if kinds == "array" and inner:
        return f"array of {_kind(inner)}"
    if "properties" in value:
        return f"{told} with {', '.join(f'`{name}`' for name in value['properties'])}"
    return told


def _allowed(value: dict[str, Any]) -> str:
    return "one of " + ", ".join(f"`{json.dumps(one)}`" for one in value["enum"])
