"""Tables in Markdown."""

from collections.abc import Iterator, Sequence


def table(head: Sequence[str], rows: Iterator[Sequence[object]]) -> str:
    """Return a Markdown table; a bar inside a cell would end it, so it is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
