"""Pages with commands are executed from top to bottom, in an empty folder."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from folders import DOCS
from markdown_it import MarkdownIt

sys.path.append(str(DOCS / "_ext"))

from walk import Walk, cut, merge  # a module of docs/_ext


def steps(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the directives of a page: name, argument and content."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.info.startswith("{"):
            name, _, argument = token.info[1:].partition("}")
            yield name, argument.strip(), token.content


def options(content: str) -> dict[str, str]:
    """Return the lines `:name: value` of a directive."""
    pairs = (line[1:].partition(": ") for line in content.splitlines())
    return {name: value for name, _, value in pairs}


WALKS = sorted(page for page in DOCS.rglob("*.md") if ("begin", "", "") in steps(page))


def test_tutorial_is_executed() -> None:
    assert DOCS / "tutorial.md" in WALKS


@pytest.mark.parametrize("page", WALKS, ids=lambda page: page.stem)
def test_every_command_has_the_exit_code_of_the_page(page: Path, tmp_path: Path) -> None:
    walk = Walk(tmp_path)
    for name, argument, content in steps(page):
        if name == "paste":
            walk.paste(argument, content)
        if name == "shell":
            wanted = options(content)
            ended = walk.run(argument)
            assert ended.returncode == int(wanted.get("exit", 0)), f"{argument}\n{ended.stdout}"
            cut(ended.stdout, wanted.get("from", ""), wanted.get("until", ""))
    for file in walk.folder.rglob("model.py"):
        assert "NotImplementedError" not in file.read_text(encoding="utf-8")


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
