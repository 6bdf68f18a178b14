"""The plan of a run: the clauses to judge, and the settings to judge them under."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from attentest_spec import COMPONENTS
from attentest_spec.clauses import KINDS, clauses
from attentest_spec.names import require
from attentest_spec.precision import PRECISIONS


@dataclass(frozen=True)
class Plan:
    """The settings that every worker of a run shares.

    `limit` is the time limit of one check in seconds, `memory` the limit of a backend's processes
    in GiB, `reading` holds the conventions for code that is no backend; the other fields are those
    of a bench.
    """

    clauses: tuple[str, ...]
    precision: str = "float64"
    device: str = "cpu"
    seed: int = 0
    effort: float = 1.0
    shrink: bool = True
    diagnose: bool = True
    limit: float = 60.0
    memory: float = 4.0
    reading: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, for a worker and for the header of the stream."""
        return {**asdict(self), "clauses": list(self.clauses)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Plan":
        """Read a plan back."""
        return cls(**{**plain, "clauses": tuple(plain["clauses"])})


def telling(slugs: Iterable[str]) -> tuple[str, ...]:
    """Return the clauses with the most telling first: formulas, then values, then the rest."""
    known = formulas().values()
    return tuple(
        sorted(slugs, key=lambda slug: (slug not in known, KINDS.index(clauses()[slug].kind)))
    )


@cache
def formulas() -> Mapping[str, str]:
    """Return for each component the clause with its formula: the first about its values."""
    first: dict[str, str] = {}
    for slug, clause in clauses().items():
        if clause.kind == "values":
            first.setdefault(clause.component, slug)
    return first


def select(
    components: Iterable[str] = (), slugs: Iterable[str] = (), *, precision: str = "float64"
) -> tuple[str, ...]:
    """Return the slugs of the clauses of `components` that are in `slugs`; empty means all.

    Raises UnknownName with the nearest names for a component, clause or precision that is none.
    """
    wanted = [require("component", name, COMPONENTS) for name in components]
    named = [require("clause", slug, clauses()) for slug in slugs]
    require("precision", precision, PRECISIONS)
    return tuple(
        clause.slug
        for clause in clauses().values()
        if (not wanted or clause.component in wanted or clause.anywhere)
        and (not named or clause.slug in named)
    )
