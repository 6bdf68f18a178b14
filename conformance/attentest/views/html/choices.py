"""The choices of a report: what every backend declares and what its numbers show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attentest.analysis.identify.finding import MEASURED, Finding, format_value, same
from attentest.results.verdict import FAILURES
from attentest.views.html.grid import Column
from attentest.views.html.material import Material
from attentest_spec.choices import Value


@dataclass(frozen=True)
class Cell:
    """What a backend makes of a choice: `value` is what it is taken to use, None where unknown.

    `measured` says that its numbers show just that, `notes` what else is to be said. `mark` is
    "deviates" for another option than the paper's, "refuted" where the numbers contradict it,
    else "".
    """

    value: Value | None
    measured: bool = False
    notes: tuple[str, ...] = ()
    mark: str = ""


@dataclass(frozen=True)
class Row:
    """One choice over all backends; `paper` is None where the paper is silent.

    `demand` is the text of the clause that judges it, "" where only runs speak of it: they hold it
    elsewhere.
    """

    name: str
    paper: Value | None
    why: str
    clause: str
    demand: str
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Whether two backends settle it differently, as far as is known."""
        known = [one.value for one in self.cells if one.value is not None]
        return any(not same(one, known[0]) for one in known)


def backends(material: Material, columns: Sequence[Column]) -> list[str]:
    """Return the backends whose choices are known: of the runs, then of the comparisons."""
    compared = [name for one in material.comparisons for name in one["backends"]]
    return list(dict.fromkeys([*(one.name for one in columns), *compared]))


def rows(material: Material, columns: Sequence[Column]) -> list[Row]:
    """Return every choice that a run or a comparison speaks of, in their order."""
    names = backends(material, columns)
    judged = {one.name: one for one in columns}
    found = _findings(material)
    return [
        Row(
            name,
            choice["paper"],
            choice.get("why", ""),
            choice["clause"],
            choice.get("demand", ""),
            tuple(_cell(name, choice, judged.get(one), found.get((one, name))) for one in names),
        )
        for name, choice in _described(material).items()
    ]


def _described(material: Material) -> dict[str, Mapping[str, Any]]:
    """Return what is said of every choice; what a comparison says is the fuller."""
    told: dict[str, Mapping[str, Any]] = {}
    for run in material.runs:
        told |= {one["name"]: one for one in run.header["choices"]}
    for comparison in material.comparisons:
        told |= {one["choice"]: one for one in comparison["choices"]}
    return told


def _findings(material: Material) -> dict[tuple[str, str], Finding]:
    """Return what the comparisons measured, by backend and choice."""
    return dict(_measured(material.comparisons))


def _measured(
    comparisons: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[tuple[str, str], Finding]]:
    for comparison in comparisons:
        for row in comparison["choices"]:
            for backend, one in zip(comparison["backends"], row["findings"], strict=True):
                yield (backend, row["choice"]), Finding.from_dict(one)


def _cell(
    name: str, choice: Mapping[str, Any], column: Column | None, found: Finding | None
) -> Cell:
    if column is None or column.judged.failure:
        return _compared(choice["paper"], found) if found else Cell(None)
    verdict = column.cases.get(choice["clause"])
    declared: Value | None = column.judged.facts["choices"].get(name)
    broken = verdict is not None and verdict.status in FAILURES
    if found and not broken:
        return _compared(choice["paper"], found)
    held = verdict is not None and verdict.status in ("pass", "deviation")
    shown = verdict.message.rpartition("measured: ")[2] if verdict and held else ""
    value = declared if declared is not None else choice["paper"]
    if value is None and shown:
        value = shown
    return _told(choice["paper"], declared, value, held and value is not None, broken)


def _compared(paper: Value | None, found: Finding) -> Cell:
    """Return what was measured of a backend for a comparison."""
    value = found.expected if found.expected is not None else found.measured
    shown = found.status == MEASURED and found.agrees and value is not None
    cell = _told(paper, found.declared, value, shown, not found.agrees)
    if found.agrees:
        return cell
    measured = format_value(found.measured) if found.status == MEASURED else found.status
    return replace(cell, notes=(*cell.notes, f"measured: {measured}"))


def _told(
    paper: Value | None, declared: Value | None, value: Value | None, measured: bool, broken: bool
) -> Cell:
    notes = () if declared is not None else ("undeclared",)
    if not measured and not broken:
        notes = (*notes, "not measured")
    deviates = value is not None and paper is not None and not same(value, paper)
    return Cell(value, measured, notes, "refuted" if broken else "deviates" if deviates else "")
