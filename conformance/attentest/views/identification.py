"""The terminal's view of an identification: one table, and notes below it."""

from collections.abc import Mapping
from textwrap import fill

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attentest.analysis.identify.finding import (
    MEASURED,
    UNDETERMINED,
    Finding,
    format_value,
    same,
)
from attentest.results.wording import PAPER

LEGEND = "* another option than the paper's    ! not what is declared    ? cannot be determined"


def show(console: Console, target: str, found: Mapping[str, Finding]) -> None:
    """Print the table, notes on single choices, and contradictions to the declaration."""
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("choice", "declared", "measured", PAPER):
        table.add_column(heading, overflow="fold", no_wrap=heading == "choice")
    for one in found.values():
        table.add_row(*_row(one))
    console.print(table)
    notes = _notes(found)
    for text in ["", LEGEND, "", *notes, *[""] * bool(notes), _summary(target, found)]:
        console.print(Text(fill(text, console.width, subsequent_indent="  ")), soft_wrap=True)


def _row(one: Finding) -> tuple[Text | str, ...]:
    measured = format_value(one.measured) if one.status == MEASURED else one.status
    paper = "(silent)" if one.paper is None else format_value(one.paper)
    declared = "-" if one.declared is None else format_value(one.declared)
    mark, style = _mark(one)
    return Text(mark, style=style), one.choice, declared, Text(measured, style=style), paper


def _mark(one: Finding) -> tuple[str, str]:
    """Return the sign of a row, so that it reads without colour, and a style."""
    if not one.agrees:
        return "!", "bold red"
    if one.status != MEASURED:
        return "?", "yellow"
    if one.paper is not None and not same(one.paper, one.measured):
        return "*", "cyan"
    return "", ""


def _notes(found: Mapping[str, Finding]) -> list[str]:
    """Return every reason once, behind the choices that it is about."""
    about: dict[str, list[str]] = {}
    for name, one in found.items():
        if one.reason:
            status = "" if one.status == MEASURED else f"{one.status}: "
            about.setdefault(status + one.reason, []).append(name)
    return [f"{', '.join(names)}: {reason}." for reason, names in about.items()]


def _summary(target: str, found: Mapping[str, Finding]) -> str:
    measured = sum(one.status == MEASURED for one in found.values())
    wrong = [_contradiction(one) for one in found.values() if not one.agrees]
    counted = f"{target}: {measured} of {len(found)} choices measured; "
    if unknown := [name for name, one in found.items() if one.status == UNDETERMINED]:
        counted += (
            f"no options of {', '.join(unknown)} give its numbers together, so that none of these "
            f"is determined: `attentest check` looks for the mistake"
        )
        if not wrong:
            return f"{counted}."
        counted += "; "
    if not wrong:
        return counted + "none of them contradicts what is declared."
    return counted + f"{len(wrong)} NOT AS DECLARED: {'; '.join(wrong)}."


def _contradiction(one: Finding) -> str:
    how = "declared as" if one.declared is not None else "undeclared, so the paper's"
    shown = format_value(one.measured) if one.status == MEASURED else one.status
    return f"{one.choice} is {how} {format_value(one.expected)}, and the numbers show {shown}"
