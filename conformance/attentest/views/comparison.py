"""The terminal's view of a comparison: choices, numbers, explanations."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attentest.studies.comparison.parts import BOUND, StepRow
from attentest.studies.comparison.result import Comparison
from attentest.studies.comparison.words import in_full, in_short, reasons
from attentest.views.comparison_choices import choices

OF_CHOICES = (
    "* the backends differ    ! measured, declared otherwise    ? declared, not measured    "
    "- neither"
)
OF_STEPS = "> first mismatch    . equal    - not comparable: other shapes, or not shown"

NUMBER = 9
"""The minimal width of a backend's column in the table of steps, its margin included."""


def show(console: Console, found: Comparison) -> None:
    """Print the choices, the reasons behind those that differ, the numbers and explanations."""
    if len(found.backends) > 1:
        rows = [row for row in found.choices if row.is_known]
        console.print(choices(rows, found.backends, console.width))
        left = len(found.choices) - len(rows)
        unlisted = [f"{left} choices that none of them declares or shows are not listed."]
        _say(console, "", OF_CHOICES, *unlisted[: bool(left)], "", *reasons(found.choices), "")
        for some in _batches(found, console.width):
            console.print(_steps(found, some))
            _say(console, "")
        _say(console, OF_STEPS, "", *found.notes, _nearness(found), "", *_explanations(found))
    for failure in found.failures:
        _say(console, f"{failure.backend} was not compared: {failure.reason.rstrip('.')}.")


def _say(console: Console, *lines: str) -> None:
    for one in lines:
        indent = "  " * (1 + one.startswith("  "))
        text = fill(one, console.width, subsequent_indent=indent, break_on_hyphens=False)
        console.print(Text(text), soft_wrap=True)


def _explanations(found: Comparison) -> Iterator[str]:
    """Yield the pairs with the first backend in full, then the other ones in short."""
    first, *_ = found.backends
    rest = [one for one in found.explanations if one.first != first]
    for one in found.explanations:
        if one not in rest:
            yield from (*in_full(one), "")
    if rest:
        yield from ("The other pairs:", *(f"  {in_short(one)}" for one in rest), "")


def _batches(found: Comparison, width: int) -> Iterator[Sequence[int]]:
    """Yield the numbers of the backends, but the first, whose columns fit into one table."""
    room = width - max(len(row.step) for row in found.steps) - 4
    most = max(1, room // max(NUMBER, *(1 + min(len(one), 14) for one in found.backends)))
    others = range(1, len(found.backends))
    for begin in range(0, len(others), most):
        yield others[begin : begin + most]


def _steps(found: Comparison, others: Sequence[int]) -> Table:
    """Return the differences of `others` from the first backend at every step."""
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column(Text(f"difference from {found.backends[0]}"), overflow="fold")
    for number in others:
        table.add_column(Text(found.backends[number]), justify="right", overflow="fold")
    shown = {found.backends[number] for number in others}
    first = found.backends[0]
    parting = {
        one.parting.step for one in found.explanations if one.first == first and one.other in shown
    }
    for row in found.steps:
        if any(one is not None for one in row.outputs):
            table.add_row(">" if row.step in parting else "", *_differences(row, others))
    return table


def _differences(row: StepRow, others: Sequence[int]) -> Iterable[Text]:
    yield Text(row.step)
    for number in others:
        yield _number(row.outputs[number - 1])


def _number(difference: float | None) -> Text:
    if difference is None:
        return Text("-", style="dim")
    if difference <= BOUND:
        return Text("." if difference == 0 else f". {difference:.0e}", style="dim")
    return Text(f"{difference:.2g}", style="bold")


def _nearness(found: Comparison) -> str:
    """Return the differences from the reference of those that agree with it."""
    right = [
        f"{name} {one.difference:.0e}"
        for name, one in zip(found.backends, found.own, strict=True)
        if not one.step
    ]
    return f"Equal to the reference under its own choices: {', '.join(right) or 'none of them'}."
