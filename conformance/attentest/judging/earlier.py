"""The causes that the parts of a whole have shown: a whole fails by the mistakes inside of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from attentest.judging.searches import Line, settled_lines
from attentest.results.verdict import Verdict

Names = tuple[str, ...]


@dataclass(frozen=True)
class Earlier:
    """The `suspects` are likely causes; at the `lines` a mistake is known, or in no catalogue."""

    suspects: tuple[Names, ...] = ()
    lines: tuple[Line, ...] = ()

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> "Earlier":
        """Return what `verdicts` on the parts show."""
        several = list(verdicts)
        suspects = dict.fromkeys(names for one in several if (names := explanation_of(one)))
        return cls(tuple(suspects), tuple(dict.fromkeys(settled_lines(several))))

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
