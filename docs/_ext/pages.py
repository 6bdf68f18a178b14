"""Writes the generated pages: chapters, clauses, choices, components, implementations, reference.

Does not depend on Sphinx. The content comes from the spec, the command line and schema of the
suite, and the folders under implementations/.
"""

import json
import os
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import implementation_pages
from tables import table

import attentest
from attentest.interfaces.cli.main import main as command
from attentest_spec import CHOICES, COMPONENTS, Choice, Choices, Clause, Sizes
from attentest_spec.clauses import KINDS, chapter_text, clauses
from attentest_spec.components import CHAPTERS
from attentest_spec.parameters import shapes

PAPER = "[Vaswani et al. 2017](https://arxiv.org/abs/1706.03762)"
GIVEN = "d_model 6, heads 2, d_ff 10, one layer, vocabularies 11 and 13"


def version() -> str:
    """Return the version of the suite, which all packages share."""
    return attentest.__version__


def write(root: Path, out: Path) -> list[Path]:
    """Write every generated page of the repository at `root` into an emptied `out`."""
    shutil.rmtree(out, ignore_errors=True)
    shown = implementation_pages.implementations(root)
    texts = {
        "clauses.md": _clauses_page(),
        "choices.md": _choices_page(),
        "components.md": _components_page(),
        "commands.md": _commands_page(),
        "records.md": _records_page(),
        "implementations/index.md": implementation_pages.overview(shown),
    }
    texts |= {
        f"chapters/{chapter}.md": _chapter_page(root, out / "chapters", chapter)
        for chapter in CHAPTERS
    }
    texts |= {
        f"implementations/{one.name}.md": implementation_pages.page(one, out / "implementations")
        for one in shown
    }
    return [_write(out / name, text) for name, text in texts.items()]


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.strip() + "\n", encoding="utf-8")
    return path


# The spec ------------------------------------------------------------------------------------


def _chapter_page(root: Path, here: Path, chapter: str) -> str:
    """Return the chapter with a target before every clause, followed by its reference."""
    text = re.sub(r"^### (\S+)$", r"(\1)=\n### `\1`", chapter_text(chapter), flags=re.MULTILINE)
    mistakes = f"Correct and wrong as pictures: [common mistakes](../mistakes/{chapter}.md)."
    text = re.sub(r"\A(# .*\n)", rf"\1\n{mistakes}\n", text)
    reference = os.path.relpath(root / "spec" / "attentest_spec" / f"{chapter}.py", here)
    return f"""{text}
## The reference

NumPy in float64, written from the formulas above: `attentest_spec/{chapter}.py`.

```{{literalinclude}} {reference}
:language: python
```
"""


def _clauses_page() -> str:
    every = clauses().values()
    musts = sum(one.level == "MUST" for one in every)
    kinds = ", ".join(f"{sum(one.kind == kind for one in every)} {kind}" for kind in KINDS)
    parts = [
        "# Clauses",
        f"{len(every)} clauses in {len(CHAPTERS)} chapters: {musts} have the "
        f"level MUST, {len(every) - musts} the level SHOULD. By kind: {kinds}. `attentest explain "
        "SLUG` prints one of them with its reason and its source.",
    ]
    for chapter in CHAPTERS:
        rows = (_clause_row(one) for one in every if one.chapter == chapter)
        parts += [
            f"## {chapter}",
            f"[The whole chapter](chapters/{chapter}.md)",
            table(["clause", "component", "depth", "kind", "text"], rows),
        ]
    return "\n\n".join(parts)


def _clause_row(clause: Clause) -> tuple[str, ...]:
    component = f"`{clause.component}`"
    name = f"{{ref}}`{clause.slug} <{clause.slug}>`"
    return name, component, clause.depth, clause.kind, clause.text


def _choices_page() -> str:
    return "\n\n".join(
        [
            "# Choices",
            "Correct implementations differ in these choices. A backend declares its options. A "
            f"missing declaration means the option of {PAPER}; if the paper does not specify one, "
            "every option passes.",
            *(_choice_section(choice) for choice in CHOICES.values()),
        ]
    )


def _choice_section(choice: Choice) -> str:
    options = (
        (f"`{one.name}`{' (the paper)' if one.name == choice.paper else ''}", one.meaning)
        for one in choice.options
    )
    rows = [*options, *([("a number", choice.number)] if choice.number else [])]
    unspecified = (
        ""
        if choice.paper
        else f"\n\nThe paper does not specify it; without a declaration: `{choice.first}`."
    )
    return f"""(choice-{choice.name})=
## {choice.name}

{choice.question} {choice.why}

{table(["option", "meaning"], iter(rows))}{unspecified}

Judged by {{ref}}`{choice.clause} <{choice.clause}>`. Source: {choice.source}."""


def _components_page() -> str:
    parts = [
        "# Components and canonical parameters",
        "Only NumPy arrays cross the contract: batch first, token ids int64, masks boolean with "
        "True = may be attended, linear weights (out, in). The parameters of a component have "
        "canonical names; the parameter map of a backend translates them to its own names.",
        f"The shapes below are those for {GIVEN}, with projection biases.",
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
    parameters = shapes(name, Sizes(layers=1), Choices(projection_bias="present"))
    rows = ((f"`{key}`", f"`{shape}`") for key, shape in parameters.items())
    lines += [table(["canonical parameter", "shape"], rows)] if parameters else ["No parameters."]
    return "\n\n".join([*lines, f"Chapter: [{component.chapter}](chapters/{component.chapter}.md)"])


# The suite's command and stream ------------------------------------------------------------------


def _commands_page() -> str:
    assert isinstance(command, click.Group)
    parts = ["# Commands and their options"]
    with click.Context(command, info_name="attentest", max_content_width=88) as context:
        for name in command.list_commands(context):
            one = command.get_command(context, name)
            assert one is not None
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
    """Return a short description of the type of a field."""
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return _allowed(value)
    if "$ref" in value:
        return f"a {value['$ref'].rpartition('/')[2]}"
    kinds = value.get("type", "any")
    name = kinds if isinstance(kinds, str) else " or ".join(kinds)
    inner = value.get("items") or value.get("properties")
    if kinds == "array" and inner:
        return f"array of {_kind(inner)}"
    if "properties" in value:
        return f"{name} with {', '.join(f'`{key}`' for key in value['properties'])}"
    return name


def _allowed(value: dict[str, Any]) -> str:
    return "one of " + ", ".join(f"`{json.dumps(one)}`" for one in value["enum"])
