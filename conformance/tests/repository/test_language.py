"""The language rules: module docstrings, names of tests, and words in the text that users read.

`PENDING` lists the folders, pages and commands that do not follow the rules yet. The tests of an
entry are strict expected failures: remove the entry when its text is corrected.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from folders import DOCS, REPOSITORY

from attentest.interfaces.cli.main import COMMANDS
from attentest.interfaces.cli.main import main as command

BANNED = {
    r"beside": "next to, compared with",
    r"births?|born": "initialisation, initialised",
    r"cr(y|ies) wolf": "gives a false alarm",
    r"doors?": "interfaces",
    r"glue": "adapter",
    r"heeds?": "depends on",
    r"kill(s|ed)?": "detected",
    r"last words": "tail of stderr",
    r"looks? like": "likely cause",
    r"odd(ity|ities)|zoo": "unusual but correct code",
    r"oracles?": "reference",
    r"paper( is|:) silent|\(silent\)": "the paper does not specify",
    r"plant(s|ed|ing)?": "inject, injected",
    r"room": "tolerance, margin",
    r"said": "reported",
    r"side by side": "compared",
    r"sound": "correct",
    r"specimens?": "reference model",
    r"stands? (at|there|alone|for|in)": "is, means",
    r"to the last bit": "bit-exact",
    r"told": "reported",
    r"unlike": "different",
    r"wings?": "folder, part",
    r"witness(es)?": "counterexample",
}
"""Patterns of words that have no other use in this project, each with its replacement."""

PENDING: dict[str, set[str]] = {"docstrings": set(), "names": set(), "words": set(), "help": set()}
"""The parameters of each kind of test that do not follow the rules yet."""


def without_code(text: str) -> str:
    """Return Markdown without comments, fenced blocks and inline code."""
    hidden = r"<!--.*?-->|^ *(`{3,}).*?^ *\1 *$|`[^`]*`"
    return re.sub(hidden, "", text, flags=re.MULTILINE | re.DOTALL)


def banned(text: str) -> list[str]:
    """Return the banned words in Markdown or help text, with replacements; code is ignored."""
    prose = " ".join(without_code(text).split())
    return [
        f"{match[0]} -> {better}"
        for word, better in BANNED.items()
        for match in re.finditer(rf"(?<![\w.-])(?:{word})(?![\w-])", prose, re.IGNORECASE)
    ]


def questions(source: str) -> list[str]:
    """Return the first words of docstrings that ask (What, How) in place of naming the thing."""
    return re.findall(
        r'^\s*[rR]?"""\s*((?:What|Which|How|Where|Why)\b.{0,40})', source, re.MULTILINE
    )


def badly_named_tests(source: str) -> list[str]:
    """Return the names of tests that start with `test_what_`."""
    if "test_what_" not in source:  # as above
        return []
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = (node.name for node in ast.walk(ast.parse(source)) if isinstance(node, functions))
    return [name for name in names if name.startswith("test_what_")]


# The scanner ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Its last words are printed.",
        "Equal to the last\nbit.",
        "The Oracle says so.",
        "Faults are planted and killed.",
        "| norm | (silent) |",
        "```text\ncode\n```\nthen it is told",
    ],
)
def test_banned_words_are_found_in_bad_samples(text: str) -> None:
    assert banned(text)


@pytest.mark.parametrize(
    "text",
    [
        "The option `--witness` and `oracle.py`.",
        "```python\nfrom attentest.zoo import planted\n```",
        "   ```text\n   found: it is told\n   ```\n",
        "A soundtrack, a classroom, an indoor plantation, --side-by-side.",
        "The reference differs; the process ended.",
    ],
)
def test_banned_words_are_not_found_in_code_and_other_words(text: str) -> None:
    assert banned(text) == []


def test_docstrings_that_ask_are_found() -> None:
    assert questions('"""What a check is written with."""')
    assert questions('"""\nWhat a check is written with.\n"""')
    assert questions('x = 1\n    """How many there are."""')
    assert not questions('"""Tools for writing checks. What they do: .."""')
    assert not questions('"""Whatever."""')
    assert not questions("x = 1")


def test_badly_named_tests_are_found_in_classes_and_functions() -> None:
    source = "class A:\n    def test_what_is(self): ...\nasync def test_what_x(): ...\n"
    assert sorted(badly_named_tests(source)) == ["test_what_is", "test_what_x"]
    assert badly_named_tests("def test_whatever(): ...\ndef what_is(): ...\n") == []


# Python files, folder by folder -----------------------------------------------------------------

TOPS = ("spec", "conformance", "implementations", "docs")
DEPTH = {"conformance": 3, "spec": 2}
"""The number of segments of a path that name a folder here, by the first segment; otherwise 1."""


def folder_of(path: Path) -> str:
    """Return the folder in whose test `path` is checked."""
    segments = path.relative_to(REPOSITORY).parts[:-1]
    return "/".join(segments[: DEPTH.get(segments[0], 1)])


@cache
def python_files() -> dict[str, list[Path]]:
    """Return the Python files by their folders, without caches and environments."""
    found: dict[str, list[Path]] = {}
    for top in TOPS:
        for path in sorted((REPOSITORY / top).rglob("*.py")):
            segments = path.relative_to(REPOSITORY).parts
            if not any(one.startswith(".") or one in ("build", "dist") for one in segments):
                found.setdefault(folder_of(path), []).append(path)
    return found


def parameter(name: str, kind: str) -> object:
    """Return `name` as a parameter, an expected failure if it is pending for tests of `kind`."""
    pending = pytest.mark.xfail(reason="language not corrected yet", strict=True)
    return pytest.param(name, marks=[pending] if name in PENDING[kind] else [])


def by_folder(kind: str) -> pytest.MarkDecorator:
    """Parametrise a test of `kind` by the folders that have Python files."""
    return pytest.mark.parametrize("folder", [parameter(one, kind) for one in python_files()])


def sources(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the source of every Python file that belongs to `folder`."""
    for path in python_files()[folder]:
        yield str(path.relative_to(REPOSITORY)), path.read_text(encoding="utf-8")


@by_folder("docstrings")
def test_docstrings_name_the_thing(folder: str) -> None:
    found = [f"{path}: {words}" for path, source in sources(folder) for words in questions(source)]
    assert not found


@by_folder("names")
def test_tests_are_named_by_subject_and_behaviour(folder: str) -> None:
    found = [
        f"{path}: {name}" for path, source in sources(folder) for name in badly_named_tests(source)
    ]
    assert not found


# Text that users read ---------------------------------------------------------------------------

WRITTEN = ("*.md", "spec/README.md", "conformance/README.md", "implementations/*/README.md")
PAPER = "](https://arxiv.org/abs/1706.03762)"
GENERATED = (DOCS / "generated", DOCS / "_build")
PAGES = [
    *(path for name in WRITTEN for path in sorted(REPOSITORY.glob(name))),
    *(
        page
        for page in sorted(DOCS.rglob("*.md"))
        if not any(folder in page.parents for folder in GENERATED)
    ),
    *sorted((REPOSITORY / "spec" / "attentest_spec").glob("*.md")),
]
OWN = [page for page in PAGES if page.parent == REPOSITORY or DOCS in page.parents]
"""The pages that are not part of a package."""


def group_of(page: Path) -> str:
    """Return the name of the test for `page`; the pages of all implementations share one."""
    path = page.relative_to(REPOSITORY)
    return "implementations" if path.parts[0] == "implementations" else str(path)


GROUPS = [parameter(name, "words") for name in dict.fromkeys(map(group_of, PAGES))]


@pytest.mark.parametrize("group", GROUPS)
def test_page_contains_no_banned_words(group: str) -> None:
    pages = [page for page in PAGES if group_of(page) == group]
    found = [f"{page}: {word}" for page in pages for word in banned(page.read_text("utf-8"))]
    assert not found


def commands() -> Iterator[str]:
    """Yield the names of the commands, with "" for the program itself."""
    yield from ("", *COMMANDS)


def help_of(name: str) -> str:
    """Return the help of a command, unwrapped."""
    assert isinstance(command, click.Group)
    with click.Context(command, info_name="attentest") as context:
        one = command.get_command(context, name) if name else command
    assert one is not None
    with click.Context(one, info_name=name or "attentest") as context:
        return " ".join(one.get_help(context).split())


@pytest.mark.parametrize(
    "name", [parameter(f"attentest {one}".strip(), "help") for one in commands()]
)
def test_help_contains_no_banned_words(name: str) -> None:
    assert banned(help_of(name.removeprefix("attentest").strip())) == []


def test_help_is_read() -> None:
    assert "BACKEND" in help_of("run")
    assert "--version" in help_of("")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_page_links_the_paper_at_most_once(page: Path) -> None:
    assert page.read_text(encoding="utf-8").count(PAPER) <= 1


@pytest.mark.parametrize("page", OWN, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_page_links_the_paper_at_its_first_mention(page: Path) -> None:
    prose = without_code(page.read_text(encoding="utf-8"))
    mention = re.search(r"\bpaper\b", prose)
    assert mention is None or -1 < prose.find(PAPER) < mention.start()
