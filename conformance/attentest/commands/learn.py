"""`attentest learn`: backends trained on a small task, side by side."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from attentest import results
from attentest.commands.usage import Usage, usage
from attentest.comparison.compare import unlike
from attentest.learning.learn import side_by_side
from attentest.learning.regime import EQUAL, OWN, PRECISIONS, SIZES, Regime
from attentest.learning.result import Learning
from attentest.learning.tasks import TASKS, BadTask
from attentest.learning.view import show
from attentest.learning.worker import Apart
from attentest.output import progress, vacant
from attentest.targets import is_name
from attentest_spec import registry
from attentest_spec.names import require

WORKERS = 2
"""How many models are trained at a time."""

PICTURES = (".svg", ".png")

_FILE = click.Path(dir_okay=False, path_type=Path)
_REGIME = (
    click.option("--task", default="copy", show_default=True, help=f"One of {', '.join(TASKS)}."),
    click.option("--length", type=int, help="Tokens of a question; for addition, digits."),
    click.option("--steps", type=int, help="Steps of training (default: the task's own)."),
    click.option("--every", type=int, help="Steps from one validation to the next."),
    click.option("--batch", type=int, help="Questions in a step (default: 30)."),
    click.option("--rate", type=float, help="A constant learning rate (default: the paper's)."),
    click.option("--warmup", type=int, help="Steps of the paper's warm-up (default: 400)."),
    click.option("--smoothing", type=float, help="Label smoothing (default: 0)."),
    click.option("--initial", default=EQUAL, show_default=True, help=f"Weights: {EQUAL} or {OWN}."),
    click.option("--dtype", "precision", help=f"One of {', '.join(PRECISIONS)}."),
    *(
        click.option(f"--{name.replace('_', '-')}", name, type=int, help=f"Default: {size}.")
        for name, size in SIZES.items()
    ),
)


def _regime(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_REGIME):
        command = option(command)
    return command


@click.command("learn")
@click.argument("targets", nargs=-1, metavar="[TARGET ..]")
@_regime
@click.option("--seed", default=0, show_default=True, help="Seed of weights and questions.")
@click.option("--seeds", default=1, show_default=True, help="Train from so many seeds.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep checkpoints here; an interrupted training goes on.",
)
@click.option("--json", "json_file", type=_FILE, help="Write the result to this file.")
@click.option("--plot", type=_FILE, help="Draw the curves into this file, .svg or .png.")
@click.option(
    "--timeout", default=120.0, show_default=True, help="Seconds a backend may take at a time."
)
@click.option("--memory", default=4.0, show_default=True, help="GiB that a backend may use.")
def learn_command(
    targets: tuple[str, ...],
    seed: int,
    seeds: int,
    folder: Path | None,
    json_file: Path | None,
    plot: Path | None,
    timeout: float,
    memory: float,
    **asked: Any,
) -> None:
    """Train the models of TARGETS (all installed backends by default) on a small task.

    All get equal data, equal weights as far as their choices have a place for them, and equal
    steps of Adam. A TARGET is a name (see `attentest list backends`), FILE.py, FILE.py:OBJECT or
    MODULE:OBJECT. Exit code 0: all were trained, however well; 1: one failed; 2: usage; 3: one
    could not be loaded.
    """
    console = Console()
    try:
        with usage():
            regime = Regime.of(**asked)
            named = _named(targets)
            _check(json_file, plot)
            found = _trained(named, regime, range(seed, seed + seeds), folder, timeout, memory)
            if not targets:
                found = replace(found, notes=(*found.notes, *_not_installed()))
            results.write(json_file, "learning", found.as_dict())
    except BadTask as wrong:
        raise Usage(str(wrong)) from wrong
    show(console, found)
    if plot is not None and found.curves:
        from attentest.learning import plots

        plots.save(plots.learning_curves(found.as_dict()), plot)
    sys.exit(_exit_code(found))


def _exit_code(found: Learning) -> int:
    if not all(one.loaded for one in found.failures):
        return 3
    return int(bool(found.failures) or not found.curves)


def _named(targets: tuple[str, ...]) -> list[str]:
    """Return the targets, all installed ones where none is named; refuse names that are none."""
    known = registry.names()
    for target in targets:
        if is_name(target):
            require("backend", target, known)
    named = list(targets or registry.installed())
    if not named:
        raise Usage("No backend is installed. Install one, or name a file.")
    return named


def _not_installed() -> tuple[str, ...]:
    left_out = registry.not_installed().items()
    return tuple(f"{name} was left out; its library is missing: {how}" for name, how in left_out)


def _check(json_file: Path | None, plot: Path | None) -> None:
    """Refuse before anything is trained what could not be carried out at the end."""
    for path in filter(None, (json_file, plot)):
        if not path.parent.is_dir():
            raise Usage(f"{path} cannot be written: there is no folder {path.parent}.")
    if json_file is not None and json_file.exists():
        try:
            results.read(json_file, "learning")
        except results.Unreadable as other:
            raise Usage(f"{other} It was left as it is; name another file.") from other
    if plot is not None:
        _check_plot(plot)


def _check_plot(path: Path) -> None:
    if path.suffix not in PICTURES:
        raise Usage(f"--plot draws {' or '.join(PICTURES)} files; {path} is neither.")
    vacant(path)
    from attentest.report.extra import Missing, needed

    try:
        needed("matplotlib.figure")
    except Missing as lacking:
        raise Usage(str(lacking)) from lacking


def _trained(
    targets: list[str],
    regime: Regime,
    seeds: range,
    folder: Path | None,
    timeout: float,
    memory: float,
) -> Learning:
    stop = Event()
    learners = {
        label: Apart(label, target, timeout, memory, stop)
        for label, target in zip(unlike(targets), targets, strict=True)
    }
    with progress() as bar:
        listener = _listener(bar, list(learners), regime.steps * len(seeds))
        return side_by_side(
            learners, regime, tuple(seeds), folder, workers=WORKERS, listener=listener, stop=stop
        )


def _listener(bar: Progress, labels: list[str], total: int) -> Callable[[str, int, int], None]:
    tasks = {label: bar.add_task(escape(label), total=total) for label in labels}
    done: dict[tuple[str, int], int] = {}

    def step(label: str, seed: int, number: int) -> None:
        done[label, seed] = number
        completed = sum(count for (name, _), count in done.items() if name == label)
        bar.update(tasks[label], completed=completed)

    return step
