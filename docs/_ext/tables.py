"""Tables in Markdown."""

from collections.abc import Iterator, Sequence


def table(head: Sequence[str], rows: Iterator[Sequence[object]]) -> str:
    """Return a Markdown table; bars inside cells are escaped, because they would end the cell."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
