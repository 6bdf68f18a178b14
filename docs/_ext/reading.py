"""Changes of pages when they are read: the tree of contents, links, and a link to the paper."""

import posixpath
import re
from typing import Any

PAPER = "[Vaswani et al. 2017](https://arxiv.org/abs/1706.03762), *Attention Is All You Need*"

GENERATED = {
    "README.md#compare-implementations": "comparison.md",
    "README.md#real-libraries": "libraries.md",
    "conformance/attentest/interfaces/cli": "commands.md",
    "conformance/attentest/results/stream.schema.json": "records.md",
    "docs/families.py": "families.md",
    "implementations": "implementations/index.md",
    "spec/attentest_spec": "clauses.md",
    "spec/attentest_spec/choices/table.py": "choices.md",
    "spec/attentest_spec/components.py": "components.md",
}
"""Generated pages by what they are generated from, or by what says the same in the repository."""

_OF_CHAPTER = {
    r"spec/attentest_spec/(\w+)\.md": "chapters",
    r"conformance/attentest/faults/(\w+?)(?:\.py)?": "mistakes",
}
"""The folders of generated pages of chapters, by patterns of what they are generated from."""


def with_paper(text: str) -> str:
    """Return a page with a link to the paper where it names it and has none."""
    if "arxiv.org/abs/1706.03762" in text or not re.search(r"\bpaper\b", text, re.IGNORECASE):
        return text
    return f'{text.rstrip()}\n\n---\n\n"The paper" is {PAPER}.\n'


def with_generated(text: str, page: str) -> str:
    """Return the page `page` of the documentation with its links to generated pages.

    Generated pages are not in the repository. There, and on a forge, the links lead to the files
    that the pages are generated from.
    """
    folder = posixpath.dirname(f"docs/{page}")

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[1]))
        generated, anchor = _generated(target)
        if not generated:
            return found[0]
        return f"]({posixpath.relpath(f'docs/generated/{generated}', folder)}{anchor})"

    return re.sub(r"\]\(([^)\s:]+)\)", link, text)


def _generated(target: str) -> tuple[str, str]:
    """Return the generated page for a path in the repository, "" for none, and the anchor in it."""
    if target in GENERATED:
        return GENERATED[target], ""
    path, mark, anchor = target.partition("#")
    for pattern, folder in _OF_CHAPTER.items():
        if found := re.fullmatch(pattern, path):
            return f"{folder}/{found[1]}.md", mark + anchor
    return GENERATED.get(path, ""), mark + anchor


def setup(app: Any) -> dict[str, bool]:
    """Add the contents to the first page, and links to generated pages and to the paper."""

    def read(app: Any, name: str, content: list[str]) -> None:
        if name.startswith("generated/"):
            content[0] = with_paper(content[0])
        else:
            content[0] = with_generated(content[0], name)
        if name == "index":
            contents = (app.srcdir / "contents.txt").read_text(encoding="utf-8")
            content[0] = f"{content[0]}\n{contents}"

    app.connect("source-read", read)
    return {"parallel_read_safe": True}
