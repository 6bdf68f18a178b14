"""The branches of code that was judged: those that no judged call ran are listed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from attentest.results.blocks import near
from attentest.results.text import counted


@dataclass(frozen=True)
class Branch:
    """The lines `first` to `last` of a file, which run under a `condition` alone.

    They belong to a function that a judged call ran; `ran` says whether they ran too. `given` is
    the argument of the constructor that makes them run, as NAME=VALUE, "" where none is known.
    """

    file: str
    first: int
    last: int
    condition: str
    ran: bool = False
    given: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the branch as plain values for the stream."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Branch":
        """Read a branch back; raises TypeError where a part is missing."""
        return cls(**plain)

    def is_inside(self, other: "Branch") -> bool:
        """Return whether all its lines are among those of `other`."""
        return self.file == other.file and other.first <= self.first and self.last <= other.last

    @property
    def words(self) -> str:
        """The lines and the condition."""
        last = f"-{self.last}" if self.last > self.first else ""
        option = f"; --give {self.given} judges it" if self.given else ""
        return f"{near(self.file)}:{self.first}{last} ({self.condition}{option})"


def not_run(branches: Iterable[Branch]) -> list[Branch]:
    """Return the branches that are not among those that were run, each once, in their order.

    One inside of another that was not run is left out.
    """
    several = list(branches)
    ran = {(one.file, one.first) for one in several if one.ran}
    found: list[Branch] = []
    for one in sorted(dict.fromkeys(several), key=lambda one: (one.file, one.first, -one.last)):
        if (one.file, one.first) not in ran and not (found and one.is_inside(found[-1])):
            found.append(one)
    return found


def sentence(branches: Sequence[Branch], most: int) -> str:
    """Return which branches no judged call ran, at most so many of them; "" for none."""
    if not branches:
        return ""
    shown = [one.words for one in branches[:most]]
    rest = len(branches) - len(shown)
    more = f" and {counted(rest, 'place')} more, listed by --full" if rest else ""
    return f"not judged, since no judged call ran it: {', '.join(shown)}{more}"
