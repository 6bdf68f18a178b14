"""Changes of pages when they are read: the tree of contents, and a link to the paper."""

import re
from typing import Any

PAPER = "[Vaswani et al. 2017](https://arxiv.org/abs/1706.03762), *Attention Is All You Need*"


def with_paper(text: str) -> str:
    """Return a page with a link to the paper where it names it and has none."""
    if "arxiv.org/abs/1706.03762" in text or not re.search(r"\bpaper\b", text, re.IGNORECASE):
        return text
    return f'{text.rstrip()}\n\n---\n\n"The paper" is {PAPER}.\n'


def setup(app: Any) -> dict[str, bool]:
    """Add the contents to the first page, and the link to pages that are generated."""

    def read(app: Any, name: str, content: list[str]) -> None:
        if name == "index":
            contents = (app.srcdir / "contents.txt").read_text(encoding="utf-8")
            content[0] = f"{content[0]}\n{contents}"
        if name.startswith("generated/"):
            content[0] = with_paper(content[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True}
