"""The files that relative imports name."""

from collections.abc import Iterable, Iterator
from pathlib import Path


def relative_files(file: Path, imports: Iterable[tuple[str, int]]) -> Iterator[Path]:
    """Yield the files that `file` imports by dots: `imports` are their names, and how far up."""
    for name, level in imports:
        if level and level <= len(file.parents):
            place = file.parents[level - 1].joinpath(*filter(None, name.split(".")))
            both = place.with_name(f"{place.name}.py"), place / "__init__.py"
            yield from (one for one in both if one.is_file() and one != file)
