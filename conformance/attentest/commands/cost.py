"""`attentest cost`: what backends cost, side by side."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from attentest import results
from attentest.commands.usage import Usage, usage
from attentest.cost import BadPlan, Plan, measure
from attentest.cost.view import show
from attentest.output import create, progress, vacant
from attentest.report.extra import Missing, needed
from attentest.targets import is_name
from attentest_spec import UnknownName, registry

KINDS = ("svg", "png")
"""What a plot can be written as."""


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
    "--component", default="", help="What is measured (default: the largest that all provide)."
)
@click.option(
    "--lengths", default=_listed(_USUAL.lengths), show_default=True, callback=_numbers,
    help="Lengths of the sentences.",
)  # fmt: skip
@click.option(
    "--widths", default=_listed(_USUAL.widths), show_default=True, callback=_numbers,
    help="Widths of the model.",
)  # fmt: skip
@click.option("--length", default=_USUAL.length, show_default=True, help="Length for all widths.")
@click.option("--width", default=_USUAL.width, show_default=True, help="Width for all lengths.")
@click.option("--batch", default=_USUAL.batch, show_default=True, help="Sentences at a time.")
@click.option("--heads", default=_USUAL.heads, show_default=True, help="Heads of attention.")
@click.option("--layers", default=_USUAL.layers, show_default=True, help="Layers of each stack.")
@click.option("--repeat", default=_USUAL.repeat, show_default=True, help="Rounds at each point.")
@click.option(
    "--precision", default=_USUAL.precision, show_default=True, help="What is computed in."
)
@click.option(
    "--timeout", default=120.0, show_default=True, help="Seconds a backend may take for an answer."
)
@click.option(
    "--memory", default=4.0, show_default=True, help="GiB that a backend's process may use."
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the result."
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw time, ratios and memory into a new FILE.svg or FILE.png.",
)
def cost_command(
    targets: tuple[str, ...],
    timeout: float,
    memory: float,
    json_file: Path | None,
    plot: Path | None,
    **asked: Any,
) -> None:
    """Measure what backends cost: parameters, operations, time and memory, and how they grow.

    Times are taken in turn and told against the first backend's. A TARGET is a name (see `attentest
    list backends`), FILE.py, FILE.py:OBJECT or MODULE:OBJECT. Exit code 0: all were measured; 1:
    one failed; 2: usage; 3: one could not be loaded.
    """
    with usage():
        plan = _plan(targets, asked)
        _check(json_file, plot)
        with progress() as bar:
            task = bar.add_task("measuring", total=None)
            try:
                found = measure(
                    *targets,
                    plan=plan,
                    timeout=timeout,
                    memory=memory,
                    told=lambda done, total: bar.update(task, completed=done, total=total),
                )
            except BadPlan as wrong:
                raise Usage(str(wrong)) from wrong
        show(Console(), found)
        results.write(json_file, "cost", found.as_dict())
        if plot is not None and found.measurements:
            from attentest.cost.plots import drawn, together

            create(plot, drawn(together(found.as_dict()), plot.suffix[1:]))
    if not all(one.loaded for one in found.failures):
        sys.exit(3)
    sys.exit(int(bool(found.failures)))


def _plan(targets: tuple[str, ...], asked: Mapping[str, Any]) -> Plan:
    """Return the plan, of targets whose names are known."""
    for target in targets:
        if is_name(target) and target not in registry.names():
            raise UnknownName("backend", target, registry.names())
    try:
        return Plan(**asked)
    except BadPlan as wrong:
        raise Usage(str(wrong)) from wrong


def _check(json_file: Path | None, plot: Path | None) -> None:
    """Refuse before anything is measured what could not be written at the end."""
    for path in filter(None, (json_file, plot)):
        if not path.parent.is_dir():
            raise Usage(f"{path} cannot be written: there is no folder {path.parent}.")
    if json_file is not None and json_file.exists():
        try:
            results.read(json_file, "cost")
        except results.Unreadable as other:
            raise Usage(f"{other} It was left as it is; name another file.") from other
    if plot is None:
        return
    if plot.suffix[1:] not in KINDS:
        raise Usage(f"A plot is FILE.svg or FILE.png; {plot} is neither.")
    vacant(plot)
    try:
        needed("matplotlib")
    except Missing as missing:
        raise Usage(str(missing)) from missing
