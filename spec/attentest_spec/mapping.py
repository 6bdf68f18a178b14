"""The parameter map: from canonical names to a backend's own.

A table is flat and maps a canonical name, or the beginning of one, to the same in the backend:
`{"query": "linears.0"}` serves `query.weight` and `query.bias` alike. A `*` stands for the number
of a layer. A composite's table is composed from its parts' with :func:`nested`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where a canonical parameter lives in a backend.

    `name` is the backend's own name. `part` = (k, n) means the k-th of n equal slices along the
    first axis of a packed parameter. `transpose` says that the backend stores it as (in, out).
    """

    name: str
    part: tuple[int, int] | None = None
    transpose: bool = False

    def view(self, stored: Any) -> Any:
        """Return the canonical view of the `stored` array or tensor; writing to it writes there."""
        turned = stored.swapaxes(-1, -2) if self.transpose else stored
        if self.part is None:
            return turned
        index, count = self.part
        rows = turned.shape[0] // count
        return turned[index * rows : (index + 1) * rows]


Table = Mapping[str, str | Place]


def nested(canonical: str, own: str, table: Table) -> dict[str, str | Place]:
    """Return `table` moved under `canonical` on the spec's side and `own` on the backend's.

    An empty `own` leaves the backend's names as they are.
    """
    return {
        _join(canonical, name): replace(_place(entry), name=_join(own, _place(entry).name))
        for name, entry in table.items()
    }


def locate(name: str, table: Table) -> Place:
    """Return the place of the canonical parameter `name`.

    Raises KeyError when the table has no entry that `name` begins with.
    """
    segments = name.split(".")
    for length in range(len(segments), 0, -1):
        start = segments[:length]
        numbers = [segment for segment in start if segment.isdigit()]
        starred = ["*" if segment.isdigit() else segment for segment in start]
        for key, stars in ((".".join(start), []), (".".join(starred), numbers)):
            if key in table:
                place = _place(table[key])
                own = _join(_fill(place.name, stars), ".".join(segments[length:]))
                return replace(place, name=own)
    raise KeyError(f"The parameter map has no entry for {name!r}.")


def _place(entry: str | Place) -> Place:
    return entry if isinstance(entry, Place) else Place(entry)


def _join(*names: str) -> str:
    return ".".join(name for name in names if name)


def _fill(own: str, numbers: list[str]) -> str:
    for number in numbers:
        own = own.replace("*", number, 1)
    return own
