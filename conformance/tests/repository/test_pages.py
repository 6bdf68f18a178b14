"""Pages as Markdown that a forge shows: marked outputs, pictures, the paper's link, no paths."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from folders import DOCS, REPOSITORY
from markdown_it import MarkdownIt

sys.path += [str(DOCS), str(DOCS / "_ext")]

from drawn import visible  # type: ignore[import-not-found]  # modules of docs/_ext
from executed import Page, Wrong  # type: ignore[import-not-found]
from marked import Place, filled, places  # type: ignore[import-not-found]
from reading import with_generated, with_paper  # type: ignore[import-not-found]
from similar import same  # type: ignore[import-not-found]

PAPER = "https://arxiv.org/abs/1706.03762"
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/how-to/*.md",
        "docs/reference/*.md",
        "spec/*.md",
        "spec/attentest_spec/*.md",
        "conformance/*.md",
        "implementations/*/*.md",
    )
    for path in REPOSITORY.glob(pattern)
)
MACHINE = re.compile(r"(?<![\w/.])/(?:tmp|home|root|work|Users|usr|opt|var)/|site-packages")
"""A path as it is on one machine."""

each_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(one.relative_to(REPOSITORY)) for one in PAGES]
)


# Every page ---------------------------------------------------------------------------------------


@each_page
def test_page_has_no_raw_directives(page: Path) -> None:
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        assert not token.info.startswith("{")
        if token.type == "inline":
            assert not re.search(r"^:::|^\([\w-]+\)=$|\{\w+\}`", token.content, re.MULTILINE)


@each_page
def test_page_that_names_the_paper_links_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.name != "CHANGELOG.md":
        assert with_paper(text) == text


@each_page
def test_page_has_no_path_of_a_machine(page: Path) -> None:
    assert not MACHINE.findall(page.read_text(encoding="utf-8"))


@each_page
def test_pictures_exist_and_have_words(page: Path) -> None:
    for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        assert words
        assert (page.parent / target).is_file()


@cache
def tracked() -> frozenset[Path]:
    """Return the files that git has, and their folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    files = [Path(one) for one in listed.stdout.split("\0") if one]
    return frozenset([*files, *(folder for one in files for folder in one.parents)])


def links(text: str) -> list[str]:
    """Return the targets of the links and pictures of a page, as Markdown reads it."""
    inline = [one for one in MarkdownIt().parse(text) if one.type == "inline"]
    inner = [child for one in inline for child in one.children or ()]
    targets = [one.attrGet("href") or one.attrGet("src") for one in inner]
    return [str(one) for one in targets if one]


@each_page
def test_relative_links_lead_to_tracked_files(page: Path) -> None:
    for target in links(page.read_text(encoding="utf-8")):
        path = target.partition("#")[0]
        if path and not re.match(r"\w+:", path):
            place = (page.parent / path).resolve().relative_to(REPOSITORY)
            assert place in tracked(), target


def test_links_lead_to_generated_pages_where_these_exist() -> None:
    text = (
        "[a](../../spec/attentest_spec/choices/table.py#mask_fill) [b](compare.md) "
        "[c](../../spec/attentest_spec/masks.md) [d](../../README.md#real-libraries) "
        "[e](../../conformance/attentest/faults/attention) [f](https://example.org/implementations)"
    )
    assert with_generated(text, "how-to/a") == (
        "[a](../generated/choices.md#mask_fill) [b](compare.md) "
        "[c](../generated/chapters/masks.md) [d](../generated/libraries.md) "
        "[e](../generated/mistakes/attention.md) [f](https://example.org/implementations)"
    )


@each_page
def test_printed_output_is_written_by_its_command(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    marked = {one.code for one in places(text) if one.kind in ("run", "include", "curves", "index")}
    assert None not in marked, "python docs/outputs.py --write fills it"
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.info == "text" and token.content.startswith("$ "):
            assert token.content in marked or "<!-- matrix:begin -->" in text


def test_generated_page_gets_the_link_to_the_paper() -> None:
    assert PAPER in with_paper("# Choices\n\nThe paper's option comes first.")
    assert with_paper("# Components\n\nNewspapers.") == "# Components\n\nNewspapers."


def test_paths_of_machines_are_found() -> None:
    assert MACHINE.search("File /tmp/x/a.py")
    assert MACHINE.search("'/home/me/a.py'")
    assert not MACHINE.search("/path/to/project and https://example.org/tmp/ and docs/tmp/x")


def test_picture_of_the_matrix_shows_the_numbers_of_the_readme() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    block = readme.partition("$ attentest run\n")[2].partition("\n\n")[0]
    picture = (DOCS / "pictures" / "matrix.svg").read_text(encoding="utf-8")
    counts = re.findall(r"\d+/\d+", block)
    assert counts
    assert sorted(counts) == sorted(re.findall(r">(\d+/\d+)<", picture))


# Marks --------------------------------------------------------------------------------------------

EXAMPLE = """# A page

<!-- run: attentest list
exit: 1
until: of
-->

<!-- compute: x
rows: a b
-->
```python
x = np.eye(2)
```

![x](x.svg)

<!-- walk -->
"""


def test_marks_are_read_and_written_back() -> None:
    run, compute, walk = places(EXAMPLE)
    assert run == Place("run", "attentest list", {"exit": "1", "until": "of"})
    assert (compute.code, compute.pictures) == ("x = np.eye(2)\n", "\n![x](x.svg)\n")
    assert (walk.kind, walk.argument) == ("walk", "")
    assert filled(EXAMPLE, lambda one: one) == EXAMPLE


def test_mark_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match="only 0 marks"):
        places("<!-- run: x\nno option -->\n")


def executed(folder: Path, text: str) -> tuple[str, Page]:
    page = Page(DOCS / "a-page-of-a-test.md", text, folder)
    return page.executed(), page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- run: attentest explain nothing-of-this-name -->\n", "ended with 2"),
        ("<!-- run: attentest --version\nfrom: no such line\n-->\n", "no such line"),
        (
            "<!-- compute: x\nreference: 2.0\n-->\n```python\nx = np.ones((1, 1))\n```\n",
            "by 1 from",
        ),
        ("<!-- file: a.py -->\n```python\nx = 1\n```\n", "needs a walk"),
    ],
)
def test_page_that_says_something_wrong_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Wrong, match=message):
        executed(tmp_path, text)


def test_page_gets_outputs_and_pictures(tmp_path: Path) -> None:
    text = (
        "<!-- walk -->\n\n<!-- run: attentest --version -->\n\n"
        + EXAMPLE[EXAMPLE.index("<!-- c") :]
    )
    done, page = executed(tmp_path, text)
    assert "```text\n$ attentest --version\nattentest" in done
    assert "x = np.eye(2)\n# x: shape (2, 2)\n```" in done
    assert "![x: 1 0; 0 1](pictures/a-page-of-a-test/x.svg)" in done
    assert list(page.pictures) == [DOCS / "pictures" / "a-page-of-a-test" / "x.svg"]
    assert executed(tmp_path, done)[0] == done


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        ("took 1.5 s", "took 2.25 s", True),
        ("by 1.1e-15", "by 2.2e-16", True),
        ("query  equal to 4.4e-16", "query  equal", True),
        ("query  equal to 4.4e-06", "query  equal", False),
        ("a    12", "a 12", True),
        ("by 0.5", "by 0.6", False),
        ("12 clauses", "13 clauses", False),
        ("it passes", "it fails", False),
        ("one\n", "one\ntwo\n", False),
    ],
)
def test_times_and_rounding_alone_may_differ(old: str, new: str, equal: bool) -> None:
    assert same(old, new) is equal
    assert same(old, new, r"(?s).+")


def test_mask_of_another_meaning_is_refused() -> None:
    import numpy as np

    with pytest.raises(ValueError, match="not the causal_mask"):
        visible(np.ones((4, 4), bool), "mask", "causal_mask")
