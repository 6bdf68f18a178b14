"""The causes that the parts of a whole have shown: a whole fails by the mistakes inside of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from attentest.judging.unexplained import Line, line_of
from attentest.results.verdict import Verdict

Names = tuple[str, ...]


@dataclass(frozen=True)
class Earlier:
    """The `suspects` are likely causes, and no mistake of the catalogue explains the `lines`.

    At such a line wrong numbers were proved to begin.
    """

    suspects: tuple[Names, ...] = ()
    lines: tuple[Line, ...] = ()

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> "Earlier":
        """Return what `verdicts` on the parts show."""
        suspects: dict[Names, None] = {}
        lines: dict[Line, None] = {}
        for one in verdicts:
            if names := explanation_of(one):
                suspects[names] = None
            elif one.location is not None and one.location.confirmed:
                lines[line_of(one.location)] = None
        return cls(tuple(suspects), tuple(lines))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Earlier":
        """Read it back."""
        return cls(
            tuple(tuple(names) for names in plain["suspects"]),
            tuple((file, line, step) for file, line, step in plain["lines"]),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"suspects": [*map(list, self.suspects)], "lines": [*map(list, self.lines)]}


def explanation_of(verdict: Verdict) -> Names:
    """Return the names of the likeliest cause that gives the results, () where there is none."""
    return next((one.names for one in verdict.diagnosis[:1] if one.kind != "complaint"), ())
