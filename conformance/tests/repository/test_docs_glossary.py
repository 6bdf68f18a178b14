"""The glossary: the terms of the project, the statuses, and the spec terms in headings."""

import json
import re
from importlib.resources import files
from pathlib import Path

import click
import pytest
from folders import DOCS, REPOSITORY

import attentest_spec
from attentest.interfaces.cli.tell import list_command

GLOSSARY = DOCS / "reference" / "glossary.md"
GENERATED = (DOCS / "generated", DOCS / "_build")
TERMS = """
    backend, capability, cause, chapter, check, choice, clause, component, contract, counterexample,
    deviation, expected failures, fault, likely cause, limit, matrix, option, parameter map,
    profile, recipe, reference, reference model, target, verdict
"""
"""The terms of the project, as `defined` returns them."""

ORDINARY = {"gradient", "part", "place", "setting", "sizes", "step", "table"}
"""Public names of the spec that have their usual meaning in headings."""


def defined(text: str) -> set[str]:
    """Return the terms of a definition list in Markdown."""
    return set(re.findall(r"^(\S.*)\n: ", text, re.MULTILINE))


def headings(text: str) -> list[str]:
    """Return the headings of a page, without those inside code."""
    prose = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#+ (.*)$", prose, re.MULTILINE)


def spec_terms() -> set[str]:
    """Return the kinds of `attentest list` and the public classes of the spec, in singular."""
    kind = next(one for one in list_command.params if one.name == "kind")
    assert isinstance(kind.type, click.Choice)
    classes = {name.lower() for name in attentest_spec.__all__ if not name.isupper()} - ORDINARY
    return {term.removesuffix("s") for term in {*map(str, kind.type.choices), *classes}}


def undefined(heading: str, terms: set[str]) -> set[str]:
    """Return the spec terms in a heading that `terms` does not contain."""
    words = {word.removesuffix("s") for word in re.findall("[a-z]+", heading.lower())}
    return (words & spec_terms()) - terms


def test_definitions_are_read() -> None:
    assert defined("one\n: A number.\n\ntwo words\n: Text\n  over lines.\n\nnone\n") == {
        "one",
        "two words",
    }


def test_headings_outside_code_are_read() -> None:
    assert headings("# A\n\n```sh\n# no\n```\n\n### B c\n") == ["A", "B c"]


def test_spec_term_without_a_definition_is_found() -> None:
    assert undefined("Choices of a Backend", {"backend"}) == {"choice"}
    assert undefined("Read the table", set()) == set()


def test_terms_of_the_project_are_defined_once_and_sorted() -> None:
    text = GLOSSARY.read_text(encoding="utf-8")
    expected = sorted(" ".join(term.split()) for term in TERMS.split(","))
    assert re.findall(r"^(\S.*)\n: ", text, re.MULTILINE) == expected


def test_statuses_are_those_of_the_stream() -> None:
    schema = json.loads(
        files("attentest.results").joinpath("stream.schema.json").read_text(encoding="utf-8")
    )
    statuses = schema["$defs"]["case"]["properties"]["status"]
    statuses = (
        schema["$defs"][statuses["$ref"].rpartition("/")[2]] if "$ref" in statuses else statuses
    )
    listed = re.findall(r"^\| `([a-z-]+)` \|", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(statuses["enum"])


PAGES = [page for page in sorted(DOCS.rglob("*.md")) if not set(GENERATED) & set(page.parents)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_spec_terms_in_headings_are_defined(page: Path) -> None:
    terms = defined(GLOSSARY.read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    assert not [
        (heading, undefined(heading, terms))
        for heading in headings(text)
        if undefined(heading, terms)
    ]


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", DOCS / "index.md"], ids=lambda page: page.name
)
def test_glossary_is_linked(page: Path) -> None:
    assert "reference/glossary.md)" in page.read_text(encoding="utf-8")


def test_glossary_is_in_the_table_of_contents() -> None:
    assert "\nreference/glossary\n" in (DOCS / "contents.txt").read_text(encoding="utf-8")
