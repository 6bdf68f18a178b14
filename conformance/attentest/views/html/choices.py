"""The choices of a report: declared by each backend, and shown by its numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attentest.analysis.identify.finding import MEASURED, Finding, format_value, same
from attentest.views.html.grid import Column
from attentest.views.html.material import Material
from attentest_spec.choices import Value


@dataclass(frozen=True)
class Cell:
    """The option of a backend for a choice; `value` is None where it is not known.

    `measured` means that its numbers show that option. `mark` is "deviates" for another option
    than the paper's, "refuted" where the numbers contradict it, else "". It is "undetermined" where
    its clause fails because another one does.
    """

    value: Value | None
    measured: bool = False
    notes: tuple[str, ...] = ()
    mark: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the backend declares the option, or its numbers show or contradict one."""
        declared = self.value is not None and "undeclared" not in self.notes
        return declared or self.measured or self.mark in ("refuted", "undetermined")


@dataclass(frozen=True)
class Row:
    """One choice over all backends; `paper` is None where the paper does not specify it.

    `demand` is the text of the clause that judges it, "" where it comes from a run: that holds the
    text elsewhere.
    """

    name: str
    paper: Value | None
    why: str
    clause: str
    demand: str
    cells: tuple[Cell, ...]

    @property
    def differs(self) -> bool:
        """Whether two backends use different options, as far as is known."""
        known = [one.value for one in self.cells if one.value is not None]
        return any(not same(one, known[0]) for one in known)


def backends(material: Material, columns: Sequence[Column]) -> list[str]:
    """Return the backends whose choices are known: of the runs, then of the comparisons."""
    compared = [name for one in material.comparisons for name in one["backends"]]
    return list(dict.fromkeys([*(one.name for one in columns), *compared]))


def rows(material: Material, columns: Sequence[Column]) -> list[Row]:
    """Return the choices of runs and comparisons in their order, those that a backend has."""
    names = backends(material, columns)
    judged = {one.name: one for one in columns}
    found = _findings(material)
    every = [
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
    return [row for row in every if any(cell.is_known for cell in row.cells)]


def _described(material: Material) -> dict[str, Mapping[str, Any]]:
    """Return the description of every choice; that of a comparison is more complete."""
    choices: dict[str, Mapping[str, Any]] = {}
    for run in material.runs:
        choices |= run.choices
    for comparison in material.comparisons:
        choices |= {one["choice"]: one for one in comparison["choices"]}
    return choices


def _findings(material: Material) -> dict[tuple[str, str], Finding]:
    """Return the findings of the comparisons by backend and choice."""
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
    if column is None or column.backend.failure:
        return _compared(choice["paper"], found) if found else Cell(None)
    verdict = column.backend.by_clause.get(choice["clause"])
    declared = column.backend.description.choices.get(name)
    broken = verdict is not None and verdict.status.fails
    if choice["clause"] in column.follows:
        value = declared if declared is not None else choice["paper"]
        return Cell(value, notes=("not determined",), mark="undetermined")
    if found and not broken:
        return _compared(choice["paper"], found)
    holds = verdict is not None and verdict.status.holds
    measured = verdict.measured if verdict and holds else None
    known = (one for one in (declared, choice["paper"], measured) if one is not None)
    value = next(known, None)
    return _stated(choice["paper"], declared, value, holds and value is not None, broken)


def _compared(paper: Value | None, found: Finding) -> Cell:
    """Return the option that a comparison measured."""
    value = found.expected if found.expected is not None else found.measured
    shown = found.status == MEASURED and found.agrees and value is not None
    cell = _stated(paper, found.declared, value, shown, not found.agrees)
    if found.agrees:
        return cell
    measured = format_value(found.measured) if found.status == MEASURED else found.status
    return replace(cell, notes=(*cell.notes, f"measured: {measured}"))


def _stated(
    paper: Value | None, declared: Value | None, value: Value | None, measured: bool, broken: bool
) -> Cell:
    notes = () if declared is not None else ("undeclared",)
    if not measured and not broken:
        notes = (*notes, "not measured")
    deviates = value is not None and paper is not None and not same(value, paper)
    return Cell(value, measured, notes, "refuted" if broken else "deviates" if deviates else "")
