"""Writes the generated pages: chapters, clauses, choices, components, implementations, reference.

Knows nothing of Sphinx; everything is read from the spec, the suite's command and schema, and the
folders under implementations/.
"""

import json
import os
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import shelf
from tables import table

import attentest
from attentest.interfaces.cli.main import main as command
from attentest_spec import CHOICES, COMPONENTS, Choice, Choices, Clause, Sizes
from attentest_spec.clauses import chapter_text, clauses
from attentest_spec.components import CHAPTERS
from attentest_spec.parameters import shapes

GIVEN = "d_model 6, heads 2, d_ff 10, one layer, vocabularies 11 and 13"


def version() -> str:
    """Return the version of the suite, which all packages share."""
    return attentest.__version__


def write(root: Path, out: Path) -> list[Path]:
    """Write every generated page of the repository at `root` into an emptied `out`."""
    shutil.rmtree(out, ignore_errors=True)
    found = shelf.found(root)
    texts = {
        "clauses.md": _clauses_page(),
        "choices.md": _choices_page(),
        "components.md": _components_page(),
        "commands.md": _commands_page(),
        "records.md": _records_page(),
        "implementations/index.md": shelf.overview(found),
    }
    texts |= {
        f"chapters/{chapter}.md": _chapter_page(root, out / "chapters", chapter)
        for chapter in CHAPTERS
    }
    texts |= {
        f"implementations/{one.name}.md": shelf.page(one, out / "implementations") for one in found
    }
    return [_written(out / name, text) for name, text in texts.items()]


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.strip() + "\n", encoding="utf-8")
    return path


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
        (f"`{one.name}`{' (the paper)' if one.name == choice.paper else ''}", one.meaning)
        for one in choice.options
    )
    rows = [*options, *([("a number", choice.number)] if choice.number else [])]
    silent = "" if choice.paper else f"\n\nThe paper is silent; undeclared means `{choice.first}`."
    return f"""(choice-{choice.name})=
## {choice.name}

{choice.question} {choice.why}

{table(["option", "meaning"], iter(rows))}{silent}

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
        files("attentest.results").joinpath("stream.schema.json").read_text(encoding="utf-8")
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
