"""Sweeps and the silent-bug index in a report: figures, and tables that can be filtered."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attentest.studies.index.evidence import Evidence
from attentest.views.html.plotted import Plotted, Result, Table, figures
from attentest.views.index import CAVEAT, LEGEND, extent, sentence
from attentest.views.sweep import CAVEAT as OF_SWEEPS
from attentest.views.sweep import NO_DIFFERENCE

_MEASURES = ("validation", "tokens", "sequences")


def swept(found: Result, number: int) -> Plotted:
    """Return the result of a sweep; `number` makes its ids unique on the page."""
    from attentest.views.plots.sweep import effects

    factors = ", ".join(found["factors"]) or "no factor"
    plots = {"Effects": effects} if found["effects"] else {}
    tables = (
        _effects("Effects", found["effects"]),
        _effects("Interactions", found["interactions"]),
        _trainings(found),
    )
    return Plotted(
        f"Sweep of {found['target']} over {factors}",
        figures(found, plots, f"sweep-{number}", factors),
        tuple(one for one in tables if one.rows),
        (OF_SWEEPS,),
        (),
    )


def _effects(title: str, several: Sequence[Result]) -> Table:
    return Table(
        title,
        ("level", "instead of", "measure", "difference", "from", "to", "seen"),
        tuple(
            (
                _levels(one["levels"]),
                _levels(one["base"]),
                one["measure"],
                one["difference"],
                one["low"],
                one["high"],
                _seen(one["low"], one["high"]),
            )
            for one in several
        ),
    )


def _seen(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "no interval"
    return NO_DIFFERENCE if low <= 0 <= high else "yes"


def _levels(levels: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={one}" for name, one in levels.items())


def _trainings(found: Result) -> Table:
    factors = tuple(found["factors"])
    fields = (*factors, "seed", *_MEASURES, "reason")
    return Table(
        "Trainings",
        (*factors, "seed", "held out", "tokens right", "sequences right", "reason"),
        tuple(tuple(map(one.get, fields)) for one in found["trainings"]),
    )


def indexed(found: Result, number: int) -> Plotted:
    """Return the silent-bug index; `number` makes its ids unique on the page."""
    from attentest.views.plots.index import evidence_bars

    tasks = tuple(found["tasks"])
    about = f"{len(found['mistakes'])} mistakes"
    fields = ("fault", "component", "evidence", *tasks, "wrong")
    mistakes = Table(
        "Mistakes",
        ("mistake", "component", "shown by", *tasks, "what is wrong"),
        tuple(tuple(map(one.get, fields)) for one in found["mistakes"]),
    )
    by_task = {"any task": found["counts"], **found["by_task"]}
    return Plotted(
        f"Silent-bug index, {about}",
        figures(found, {"What shows them": evidence_bars}, f"index-{number}", about),
        (Table("Counts", ("task", *map(str, Evidence)), tuple(_counts(by_task))), mistakes),
        (sentence(found), LEGEND, extent(found), CAVEAT),
        (),
    )


def _counts(groups: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[Any, ...]]:
    for name, counts in groups.items():
        yield (name, *(counts[str(kind)] for kind in Evidence))
