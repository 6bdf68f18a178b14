"""Design choices, sizes and tasks compared by a grid of trainings."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attentest.harness.errors import Unavailable
from attentest.results.html_table import table
from attentest.results.optional import needed
from attentest.studies.cluster import EXTRA
from attentest.studies.learning.result import Spread
from attentest.studies.learning.task import BadTask
from attentest.studies.sweep.effects import MEASURES, Effect, interactions, main_effects
from attentest.studies.sweep.engine import Listener, run
from attentest.studies.sweep.grid import Grid, Levels
from attentest.studies.sweep.record import Folder, Record
from attentest.studies.sweep.training import built
from attentest_spec import Unsupported
from attentest_spec.choices import Value

COLUMNS = {
    "validation": ("held out", 1, 3, ""),
    "tokens": ("tokens", 100, 1, "%"),
    "sequences": ("sequences", 100, 1, "%"),
}
"""The measures of a cell: heading, scale, digits and unit."""


@dataclass(frozen=True)
class Sweep:
    """The trainings of a grid, in the order of the plans; their records stay in the folder."""

    grid: Grid
    records: Sequence[Record]

    @property
    def failures(self) -> tuple[Record, ...]:
        """The trainings that failed; each has a `reason`."""
        return tuple(one for one in self.records if one.reason)

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of :meth:`rows`."""
        return (*self.grid.factors, "seeds", *(heading for heading, *_ in COLUMNS.values()))

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row of text for every cell: the levels, and means with ranges over seeds."""
        several = len(self.grid.seeds)
        cells = (self.records[at : at + several] for at in range(0, len(self.records), several))
        return [(*map(str, cell[0].levels.values()), *_measured(cell)) for cell in cells]

    def effects(self, measure: str = MEASURES[0]) -> list[Effect]:
        """Return the main effects on `measure`, one of :data:`MEASURES`."""
        return main_effects(self.grid.factors, self.records, measure)

    def interactions(self, measure: str = MEASURES[0]) -> list[Effect]:
        """Return the interactions of every two factors; none where one varies at a time."""
        return interactions(self.grid.factors, self.records, measure)

    def frame(self) -> Any:
        """Return a pandas data frame with a row for every training.

        Raises Missing where pandas is not installed.
        """
        return needed("pandas", EXTRA).DataFrame([_flat(one) for one in self.records])

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values; it holds no times, so that equal sweeps are equal."""
        return {
            "target": self.grid.target,
            "factors": {name: list(levels) for name, levels in self.grid.factors.items()},
            "seeds": list(self.grid.seeds),
            "trainings": [_flat(one, times=False) for one in self.records],
            "effects": [asdict(one) for name in MEASURES for one in self.effects(name)],
            "interactions": [asdict(one) for name in MEASURES for one in self.interactions(name)],
        }

    def _repr_html_(self) -> str:
        return table(self.headings, self.rows())


def sweep(
    target: str = "paper",
    *,
    choices: Levels | None = None,
    axes: Levels | None = None,
    tasks: Iterable[str] = ("copy",),
    seeds: int | Iterable[int] = 1,
    one_at_a_time: bool = False,
    folder: Path | str | None = None,
    workers: int = 0,
    scheduler: str = "",
    listener: Listener = lambda record: None,
    **settings: Any,
) -> Sweep:
    """Train `target` under every combination of the levels of `choices` and `axes`.

    `choices` maps design choices to options, `axes` settings of a training to numbers; the first
    level of each is the base. `settings` hold for all. With a `folder` an interrupted sweep goes
    on; `workers` is the number of processes, and 0 trains in this one. Only a backend with a method
    `under` takes choices (see :class:`attentest_spec.Configurable`).

    Raises UnknownName for a name that is none, BadTask for a grid or a regime that cannot be,
    Occupied for a folder of something else, Missing where Dask is needed and not installed, and
    NoScheduler where no scheduler answers, or no longer.
    """
    grid = Grid(
        target,
        _levels(choices),
        _levels(axes),
        tuple(tasks),
        tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds),
        one_at_a_time,
        settings,
    )
    kept = Folder.temporary() if folder is None else Folder(Path(folder))
    return over(grid, kept, workers, scheduler, listener)


def over(
    grid: Grid,
    folder: Folder,
    workers: int = 0,
    scheduler: str = "",
    listener: Listener = lambda record: None,
) -> Sweep:
    """Train all of `grid` that `folder` does not hold; see :func:`sweep`."""
    with suppress(Unavailable):  # a row of the result
        _demand_choices(grid)
    records = run(grid.plans, folder, workers=workers, scheduler=scheduler, listener=listener)
    return Sweep(grid, records)


def _demand_choices(grid: Grid) -> None:
    """Refuse a backend that takes no choices before all of its trainings fail."""
    try:
        built(grid.plans[0])
    except Unsupported as failure:
        raise BadTask(
            f"{failure}. Vary its settings with axes alone, give it a method `under`, or vary the "
            f'choices of "paper".'
        ) from failure


def _levels(given: Levels | None) -> dict[str, tuple[Value, ...]]:
    return {name: tuple(levels) for name, levels in (given or {}).items()}


def _measured(several: Iterable[Record]) -> tuple[str, ...]:
    ends = [one.end for one in several if one.end is not None]
    if not ends:
        return ("0", *("failed" for _ in COLUMNS))
    return (
        str(len(ends)),
        *(
            Spread.of([getattr(one, name) for one in ends]).shown(scale, digits, unit)
            for name, (_, scale, digits, unit) in COLUMNS.items()
        ),
    )


def _flat(record: Record, *, times: bool = True) -> dict[str, Any]:
    """Return a training as one row: its levels, its seed and what was measured at its end."""
    end: Mapping[str, Any] = asdict(record.end) if record.end else dict.fromkeys(MEASURES)
    measured = {name: one for name, one in end.items() if name != "gradients"}
    clocks = {"seconds": record.seconds, "cpu_seconds": record.cpu_seconds} if times else {}
    reason = {"reason": record.reason}
    return {"key": record.key, **record.levels, "seed": record.seed, **measured, **clocks, **reason}
