"""`attentest cost`: the cost of backends, compared."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from attentest.interfaces.cli import options
from attentest.interfaces.cli.usage import Usage, exit_code, late, refuse_unknown, usage
from attentest.interfaces.cli.written import checked
from attentest.results import files
from attentest.results.output import create
from attentest.studies.cost import BadPlan, Plan, measure
from attentest.views.cost import show
from attentest.views.plots.cost import together
from attentest.views.plots.drawing import render
from attentest.views.terminal import progress


def _numbers(_: object, option: click.Parameter, text: str) -> tuple[int, ...]:
    """Read numbers with commas between them."""
    try:
        return tuple(int(one) for one in text.split(",") if one.strip())
    except ValueError as wrong:
        raise click.BadParameter(f"{text!r} is no list of numbers such as 32,64,128.") from wrong


def _listed(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


_USUAL = Plan()


@click.command("cost")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET ..")
@click.option(
    "--component",
    default="",
    help="This component alone (default: the largest that all provide).",
)
@click.option(
    "--lengths", default=_listed(_USUAL.lengths), show_default=True, callback=_numbers,
    help="Lengths of the sequences, with commas between them.",
)  # fmt: skip
@click.option(
    "--widths", default=_listed(_USUAL.widths), show_default=True, callback=_numbers,
    help="Widths of the model, with commas between them.",
)  # fmt: skip
@options.size("--length", "Tokens of a sequence, for all widths", _USUAL.length)
@options.size("--width", "Width of the model, for all lengths", _USUAL.width)
@options.size("--batch", "Sequences in a batch", _USUAL.batch)
@options.size("--heads", "Heads of attention", _USUAL.heads)
@options.size("--layers", "Layers of each stack", _USUAL.layers)
@options.size("--repeat", "Rounds at each point", _USUAL.repeat)
@options.dtype("precision", otherwise="float32 where all compute in it")
@options.limits(120.0)
@options.json_file
@options.plot
def cost_command(
    targets: tuple[str, ...],
    timeout: float,
    memory: float,
    json_file: Path | None,
    plot: Path | None,
    **asked: Any,
) -> None:
    """Measure what backends cost: parameters, operations, time and memory, and how they grow.

    Times are taken in turn and compared with those of the first backend. A TARGET is a name (see
    `attentest list backends`), FILE.py, FILE.py:OBJECT, MODULE:OBJECT, stdio:COMMAND or "paper
    NAME=OPTION ..". Exit code 0: all were measured; 1: one failed; 2: usage; 3: one could not be
    loaded.
    """
    with usage():
        refuse_unknown(targets)
        plan = _plan(asked)
        checked("cost", json_file, plot)
        with progress() as bar:
            task = bar.add_task("measuring", total=None)
            try:
                found = measure(
                    *targets,
                    plan=plan,
                    timeout=timeout,
                    memory=memory,
                    progress=lambda done, total: bar.update(task, completed=done, total=total),
                )
            except BadPlan as wrong:
                raise Usage(str(wrong)) from wrong
        show(Console(), found)
        with late():
            files.write(json_file, "cost", found.as_dict())
        if plot is not None and found.measurements:
            create(plot, render(together(found.as_dict()), plot.suffix[1:]))
    sys.exit(exit_code(found.failures, well=not found.failures))


def _plan(asked: Mapping[str, Any]) -> Plan:
    try:
        return Plan(**asked)
    except BadPlan as wrong:
        raise Usage(str(wrong)) from wrong
