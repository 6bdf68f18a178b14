"""What a notebook shows of a comparison and of a trace."""

from attentest.comparison.result import Comparison
from attentest.comparison.tracing import Trace
from attentest.comparison.words import departure, in_full, in_short, reasons
from attentest.identify.view import told
from attentest.notebook import paragraph, table


def comparison(found: Comparison) -> str:
    """Return the choices, the differences from the first backend, and what explains every pair."""
    first, *others = found.backends or ("",)
    rows = [
        (
            "*" if row.differs else "",
            row.choice,
            "(silent)" if row.paper is None else told(row.paper),
            *("" if value is None else told(value) for value in row.values),
        )
        for row in found.choices
    ]
    steps = [
        (row.step, *(None if one is None else f"{one:.2g}" for one in row.outputs))
        for row in found.steps
        if any(one is not None for one in row.outputs)
    ]
    lines = [line for one in found.explanations if one.first == first for line in in_full(one)]
    lines += [in_short(one) for one in found.explanations if one.first != first]
    lines += [f"{one.backend} was not compared: {one.reason}" for one in found.failures]
    return "".join(
        [
            table(("", "choice", "paper", *found.backends), rows),
            *map(paragraph, reasons(found.choices)),
            table((f"apart from {first}", *others), steps) if steps else "",
            *map(paragraph, (*found.notes, *lines)),
        ]
    )


def trace(found: Trace) -> str:
    """Return every step with its shapes and how far it is from the oracle's."""
    rows = [
        (
            row.step,
            ", ".join(str(one.shape) for one in row.inputs),
            None if row.output is None else str(row.output.shape),
            None if row.difference is None else f"{row.difference:.1e}",
        )
        for row in found.rows
    ]
    where = found.parting
    outcome = departure(where) if where.step else f"equal to the oracle, to {where.difference:.0e}"
    headings = ("step", "in", "out", "apart from the oracle")
    return table(headings, rows) + paragraph(f"{found.backend}: {outcome}.")
