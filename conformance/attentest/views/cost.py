"""The terminal's view of a cost: one row a length or width, one column a backend."""

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attentest.results.text import counted
from attentest.studies.cost.layers import KERNEL, NEIGHBOURHOOD
from attentest.studies.cost.memory import MIB, RESOLUTION
from attentest.studies.cost.plan import Point
from attentest.studies.cost.result import (
    FLOPS,
    MEMORY,
    TIME,
    Cost,
    Growth,
    Measurement,
    Parameters,
    Spread,
)
from attentest.views.terminal import say

LEGEND = (
    "Time: the median of the first backend that has the pass, and how many times that the others "
    "take: the median over all rounds, and its quartiles. Speed: the share of this core's speed at "
    "a plain matrix product. Memory: the peak besides parameters and inputs."
)

Cell = Callable[[Measurement], Text]


def show(console: Console, found: Cost) -> None:
    """Print counts, measurements, their growth, and why a backend is missing."""
    if found.measurements:
        say(console, _heading(found), *found.plan.notes, "")
        _title(console, "parameters, counted (! and what the spec says)")
        console.print(_parameters(found))
        say(console, "", LEGEND, "")
        for over, points in _sweeps(found):
            for which in found.plan.passes:
                _show_pass(console, found, over, points, which)
        _title(console, "growth: exponent between the two largest, largest of a + b n + c n^2")
        console.print(_growths(found))
        say(console, "", *_layers(found), "")
    for failure in found.failures:
        say(console, f"{failure.backend} was not measured: {failure.reason.rstrip('.')}.")


def _title(console: Console, text: str) -> None:
    console.print(Text(text, style="bold"), soft_wrap=True)


def _heading(found: Cost) -> str:
    plan = found.plan
    return (
        f"{plan.component}, {plan.precision}: {counted(plan.batch, 'sequence')} at a time, "
        f"{counted(plan.heads, 'head')}, {counted(plan.layers, 'layer')}, "
        f"{counted(plan.repeat, 'round')}, one thread."
    )


def _sweeps(found: Cost) -> Iterator[tuple[str, list[Point]]]:
    plan = found.plan
    if plan.lengths:
        yield "length", [Point(length, plan.width) for length in plan.lengths]
    if plan.widths:
        yield "width", [Point(plan.length, width) for width in plan.widths]


def _table(first: str, backends: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first, justify="right", no_wrap=True)
    for name in backends:
        table.add_column(Text(name), justify="right", overflow="fold")
    return table


def _parameters(found: Cost) -> Table:
    table = _table("width", found.backends)
    for width in dict.fromkeys(one.width for one in found.parameters):
        row = [one for one in found.parameters if one.width == width]
        table.add_row(str(width), *map(_count_of_parameters, row))
    return table


def _count_of_parameters(one: Parameters) -> Text:
    if one.counted is None:
        return Text(f"{one.expected:,} ?", style="dim")
    if one.agrees:
        return Text(f"{one.counted:,}")
    return Text(f"{one.counted:,} ! {one.expected:,}", style="bold red")


def _show_pass(
    console: Console, found: Cost, over: str, points: Sequence[Point], which: str
) -> None:
    taken = [
        one
        for one in found.measurements
        if one.which == which and Point(one.length, one.width) in points
    ]
    if not taken:
        return
    fixed = f"width {found.plan.width}" if over == "length" else f"length {found.plan.length}"
    quantities: dict[str, Cell] = {
        "time": _time(taken[0].backend),
        "FLOPs": _flops,
        "speed": _speed,
        "memory": _memory,
    }
    for name, cell in quantities.items():
        _title(console, f"{which}: {name} over {over} ({fixed})")
        table = _table(over, found.backends)
        for point in points:
            row = [found.at(name, point.length, point.width, which) for name in found.backends]
            cells = [Text("-", style="dim") if one is None else cell(one) for one in row]
            table.add_row(str(getattr(point, over)), *cells)
        console.print(table)
    console.print()


def _time(first: str) -> Cell:
    """Return a cell with a time, as a multiple of that of the backend `first` for the others."""

    def cell(one: Measurement) -> Text:
        if one.backend == first:
            return Text(_seconds(one.seconds.median))
        ratio = one.ratio
        return Text(f"x{ratio.median:.2f} ({ratio.low:.2f}-{ratio.high:.2f})")

    return cell


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _flops(one: Measurement) -> Text:
    if one.counted is None:
        return Text(f"{_large(one.flops)} ?", style="dim")
    if one.agrees:
        return Text(_large(one.flops))
    return Text(f"{_large(one.counted)} ! {_large(one.flops)}", style="bold red")


def _large(number: float) -> str:
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def _speed(one: Measurement) -> Text:
    return Text("-" if one.speed is None else f"{one.speed.median:.0%}")


def _memory(one: Measurement) -> Text:
    if one.memory is None:
        return Text("-", style="dim")
    return Text(_mib(one.memory))


def _mib(spread: Spread) -> str:
    if spread.median < RESOLUTION:
        return f"below {RESOLUTION / MIB:g} MiB"
    return f"{spread.median / MIB:.3g} MiB"


def _growths(found: Cost) -> Table:
    """Return the exponents at the long end, and the term that is the largest there."""
    table = Table(box=None, pad_edge=False)
    for heading in ("over", "pass", "backend", TIME, MEMORY, FLOPS):
        table.add_column(heading, overflow="fold")
    keys = dict.fromkeys((one.over, one.which, one.backend) for one in found.growths)
    for over, which, backend in keys:
        shown = {
            one.quantity: _grown(one)
            for one in found.growths
            if (one.over, one.which, one.backend) == (over, which, backend)
        }
        cells = [shown.get(quantity, "-") for quantity in (TIME, MEMORY, FLOPS)]
        table.add_row(over, which.replace("forward and", "and"), Text(backend), *cells)
    return table


def _grown(one: Growth) -> str:
    error = "" if one.error is None else f" ±{one.error:.2f}"
    if one.shares is None:
        return f"{one.exponent:.2f}{error}"
    letter = "n" if one.over == "length" else "d"
    terms = dict(zip(("const", letter, f"{letter}^2"), one.shares, strict=True))
    largest = max(terms, key=terms.__getitem__)
    return f"{one.exponent:.2f}{error} {largest} {terms[largest]:.0%}"


def _layers(found: Cost) -> Iterator[str]:
    length = max(found.plan.lengths, default=found.plan.length)
    yield (
        f"The paper's Table 1 at n = {length}, d = {found.plan.width}, k = {KERNEL}, "
        f"r = {min(NEIGHBOURHOOD, length)}: operations a layer, steps in sequence, longest path."
    )
    for one in found.layers:
        yield (
            f"  {one.layer:<26}{one.complexity:<9}{_large(one.operations):>8}   "
            f"{one.sequential:<3}{one.steps:>5g}   {one.path:<9}{one.longest:>6.3g}"
        )
