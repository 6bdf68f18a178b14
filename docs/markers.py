"""Writes generated text into a page, between two markers."""

from pathlib import Path


def write_between(page: Path, name: str, text: str) -> None:
    """Replace the text between `<!-- name:begin -->` and `<!-- name:end -->` in `page`.

    Raises ValueError if a marker is missing.
    """
    page.write_text(fill(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def fill(page: str, name: str, text: str) -> str:
    """Return `page` with `text` between its markers."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    if not rest or end not in page.partition(begin)[2]:
        raise ValueError(f"The markers {begin} .. {end} are missing.")
    return f"{before}{begin}\n{text}\n{end}{after}"
