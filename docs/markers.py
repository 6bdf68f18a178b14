"""Writes generated text into a page, between two markers that stay."""

from pathlib import Path


def between(page: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name:begin -->` and `<!-- name:end -->` in `page`.

    Raises ValueError where the markers are not there.
    """
    page.write_text(filled(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def filled(page: str, name: str, text: str) -> str:
    """Return `page` with `text` between its markers."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    if not rest or end not in page.partition(begin)[2]:
        raise ValueError(f"There is no {begin} .. {end} to write between.")
    return f"{before}{begin}\n{text}\n{end}{after}"
