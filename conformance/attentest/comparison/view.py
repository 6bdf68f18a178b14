"""The terminal's view of a comparison: choices, numbers, explanations."""

from collections.abc import Iterable, Sequence
from textwrap import fill, wrap

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attentest.comparison.result import (
    BOUND,
    EQUAL,
    EXPLAINED,
    ChoiceRow,
    Comparison,
    Departure,
    Explanation,
    Flip,
    StepRow,
)
from attentest.identify import MEASURED, Finding
from attentest.identify.view import told

OF_CHOICES = "* the backends differ    ! measured, declared otherwise    ? declared, not measured"
OF_STEPS = "> where the numbers part    . equal    - not comparable: other shapes, or not shown"


def show(console: Console, found: Comparison) -> None:
    """Print the choices, what is to know of the differing ones, the numbers and why they differ."""
    if len(found.backends) > 1:
        console.print(_choices(found.choices, found.backends, console.width))
        _say(console, "", OF_CHOICES, "", *_reasons(found.choices), "")
        if found.components:
            console.print(_steps(found))
            _say(console, "", OF_STEPS, "", *found.notes, _own(found), "")
        for one in found.explanations:
            _say(console, *_explained(one), "")
    for failure in found.failures:
        _say(console, f"{failure.backend} was not compared: {failure.reason.rstrip('.')}.")


def _say(console: Console, *lines: str) -> None:
    for one in lines:
        indent = "  " * (1 + one.startswith("  "))
        console.print(Text(fill(one, console.width, subsequent_indent=indent)), soft_wrap=True)


def _choices(rows: Sequence[ChoiceRow], backends: Sequence[str], width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    names = max(len(row.choice) for row in rows) + 2
    room = max(8, (width - names) // (len(backends) + 1) - 2)
    table.add_column("", no_wrap=True)
    table.add_column("choice", no_wrap=True)
    for heading in ("paper", *backends):
        table.add_column(_folded(Text(heading), room))
    for row in rows:
        style = "bold cyan" if row.differs else ""
        table.add_row(
            "*" if row.differs else "",
            Text(row.choice, style=style),
            _folded(Text("(silent)" if row.paper is None else told(row.paper)), room),
            *(_folded(_cell(one), room) for one in row.findings),
        )
    return table


def _folded(cell: Text, room: int) -> Text:
    """Return `cell` in lines of `room` columns, broken at hyphens where it can be."""
    return Text("\n".join(wrap(cell.plain, room)), style=cell.style)


def _cell(one: Finding) -> Text:
    """Return what is measured; what is declared where that is other or nothing was measured."""
    declared = "-" if one.declared is None else told(one.declared)
    if not one.agrees:
        shown = told(one.measured) if one.status == MEASURED else one.status
        return Text(f"{shown} ! {declared}", style="bold red")
    if one.status != MEASURED:
        return Text(declared if one.declared is None else f"{declared} ?", style="dim")
    return Text(told(one.measured) if one.declared is None else declared)


def _reasons(rows: Sequence[ChoiceRow]) -> list[str]:
    differing = [row for row in rows if row.differs]
    if not differing:
        return ["They make the same choices."]
    told = [f"{row.choice}: {row.why} (attentest explain {row.clause})" for row in differing]
    return ["Why the differing choices matter:", *told]


def _steps(found: Comparison) -> Table:
    """Return the differences from the first backend at every step."""
    first, *others = found.backends
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column(Text(f"apart from {first}"), overflow="fold")
    for heading in others:
        table.add_column(Text(heading), justify="right", overflow="fold")
    parting = {one.parting.step for one in found.explanations}
    compared = [row for row in found.steps if any(one is not None for one in row.outputs)]
    for row in compared:
        table.add_row(">" if row.step in parting else "", *_differences(row))
    return table


def _differences(row: StepRow) -> Iterable[Text]:
    yield Text(row.step)
    for difference in row.outputs:
        yield _number(difference)


def _number(difference: float | None) -> Text:
    if difference is None:
        return Text("-", style="dim")
    if difference <= BOUND:
        return Text("." if difference == 0 else f". {difference:.0e}", style="dim")
    return Text(f"{difference:.2g}", style="bold")


def _own(found: Comparison) -> str:
    """Return how near those that are right come to the oracle."""
    right = [
        f"{name} {one.difference:.0e}"
        for name, one in zip(found.backends, found.own, strict=True)
        if not one.step
    ]
    return f"Equal to the oracle under its own choices: {', '.join(right) or 'none of them'}."


def _explained(one: Explanation) -> list[str]:
    begun = f"{one.other} against {one.first}: "
    if one.status == EQUAL:
        lines = [begun + f"equal, to {one.parting.difference:.1e}."]
    elif one.status == EXPLAINED:
        lines = [begun + f"{_part(one.parting)}. Explained by {_count(one.options)}:"]
        lines += [f"  {_flip(flip)}" for flip in one.options]
        lines += [f"  {_left(one)}"]
    else:
        lines = [begun + f"NOT EXPLAINED. {_part(one.parting)}."]
    lines += [
        f"  {name} is not what the oracle does under the same choices: {_part(where)}."
        for name, where in (one.astray or {}).items()
    ]
    if one.silent:
        shown = "; ".join(_flip(flip) for flip in one.silent)
        lines += [f"  Differ, and do not show on these inputs: {shown}."]
    return lines


def _left(one: Explanation) -> str:
    was = f"{one.left:.1e} is left of {one.parting.difference:.2g}"
    if len(one.options) == 1:
        return f"With it flipped in the oracle, {was}."
    return (
        f"With all of these flipped in the oracle, {was}; without any one of them more than "
        f"{BOUND:g}."
    )


def _part(where: Departure) -> str:
    how = "in" if where.inside else "on the way to"
    return f"the numbers part {how} {where.step}, and are apart by up to {where.difference:.2g}"


def _count(options: tuple[Flip, ...]) -> str:
    return "one choice" if len(options) == 1 else f"{len(options)} choices"


def _flip(flip: Flip) -> str:
    return f"{flip.choice} {told(flip.first)} -> {told(flip.other)}"
