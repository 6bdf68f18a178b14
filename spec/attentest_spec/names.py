"""Lookup of names, with suggestions of the nearest ones for an unknown name."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches


class UnknownName(LookupError):
    """An unknown name; the message suggests the nearest known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        """Keep `kind` (such as "clause"), the unknown `name` and the sorted `known` names."""
        self.kind = kind
        self.name = name
        self.known = sorted(known)
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        near = get_close_matches(self.name, self.known, n=3, cutoff=0.5)
        if near:
            return f"There is no {self.kind} named {self.name!r}; did you mean {' or '.join(near)}?"
        some = ", ".join(self.known[:12]) + (", .." if len(self.known) > 12 else "")
        return f"There is no {self.kind} named {self.name!r}; known: {some or 'none'}."


def require(kind: str, name: str, known: Collection[str]) -> str:
    """Return `name` if it is one of `known`; raise :class:`UnknownName` if it is not."""
    if name not in known:
        raise UnknownName(kind, name, known)
    return name
