"""Pages with commands: the documentation build runs them; here, the code that they may paste."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from folders import DOCS
from markdown_it import MarkdownIt

sys.path.append(str(DOCS / "_ext"))

from walk import merge  # a module of docs/_ext


def steps(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the directives of a page: name, argument and content."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.info.startswith("{"):
            name, _, argument = token.info[1:].partition("}")
            yield name, argument.strip(), token.content


WALKS = sorted(page for page in DOCS.rglob("*.md") if ("begin", "", "") in steps(page))


def test_tutorial_is_executed() -> None:
    assert DOCS / "tutorial.md" in WALKS


def test_tutorial_contains_no_pasted_output() -> None:
    fences = MarkdownIt().parse((DOCS / "tutorial.md").read_text(encoding="utf-8"))
    assert all(token.info.startswith("{") for token in fences if token.type == "fence")


OLD = '"""A page."""\n\nimport torch\n\n\ndef one():\n    return 1\n\n\nclass Two:\n    pass\n'


def test_definition_replaces_the_one_of_the_same_name() -> None:
    new = merge(OLD, "import math\n\ndef one():\n    return math.pi\n")
    assert new == OLD.replace("import torch", "import math\nimport torch").replace(
        "1\n", "math.pi\n"
    )
    assert merge(new, "import math") == new


@pytest.mark.parametrize("code", ["def three():\n    pass", "x = 1"])
def test_code_without_a_place_is_refused(code: str) -> None:
    with pytest.raises(ValueError, match=r"three|x = 1"):
        merge(OLD, code)
