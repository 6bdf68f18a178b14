"""The terminal's view of a trace: every step with its shapes and its first values."""

from rich.console import Console
from rich.text import Text

from attentest.studies.comparison.tracing import Trace, TraceRow, departs
from attentest.views.terminal import say
from attentest_spec.setting import Floats

WIDTH = 10
"""Columns that a number takes."""

LEGEND = (
    "Each step: its difference from the reference, then inputs and output, with shapes "
    "and the first row."
)


def show_trace(console: Console, found: Trace, only: str = "") -> None:
    """Print the steps whose names begin with `only`, and the outcome."""
    say(console, LEGEND, *found.notes, "")
    for row in found.rows:
        if row.step.startswith(only):
            _show_row(console, row)
    say(console, "", _outcome(found))


def _show_row(console: Console, row: TraceRow) -> None:
    sign, style = (">", "bold red") if departs(row) else (" ", "bold")
    console.print(Text(f"{sign} {row.step}  {_apart(row)}", style=style), soft_wrap=True)
    outputs = [("out", row.output), ("reference", row.expected)]
    for name, values in [*(("in", one) for one in row.inputs), *outputs]:
        if values is not None:
            begun = f"    {name:<10}{values.shape!s:<13}"
            numbers = _numbers(values, (console.width - len(begun) - 3) // WIDTH)
            style = "dim" if name == "reference" else ""
            console.print(Text(begun + numbers, style=style), soft_wrap=True)


def _apart(row: TraceRow) -> str:
    if row.output is None:
        return "not shown by the backend"
    if row.difference is None:
        return "not shown by the reference" if row.expected is None else "of another shape"
    if row.difference == 0:
        return "equal"
    return f"{'differs by' if departs(row) else 'equal to'} {row.difference:.1e}"


def _numbers(values: Floats, most: int) -> str:
    row = values.reshape(-1, values.shape[-1] if values.ndim else 1)[0]
    shown = "".join(f"{one:{WIDTH}.4g}" for one in row[:most])
    return shown + (" .." if len(row) > most else "")


def _outcome(found: Trace) -> str:
    shown = sum(row.output is not None for row in found.rows)
    where = found.parting
    if not where.step:
        return (
            f"{found.backend}: {shown} of {len(found.rows)} steps can be seen, and are equal to "
            f"those of the reference under its choices, to {where.difference:.0e}."
        )
    how = "in" if where.inside else "at the input of"
    return (
        f"{found.backend} first differs from the reference under its choices {how} {where.step}, "
        f"by up to {where.difference:.2g}. `attentest run` or `check` says what is wrong."
    )
