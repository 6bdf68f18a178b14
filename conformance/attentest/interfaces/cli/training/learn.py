"""`attentest learn`: backends trained on a small task, compared."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from attentest.harness.process import Isolation
from attentest.interfaces.cli import options
from attentest.interfaces.cli.usage import Usage, exit_code, late, refuse_unknown, usage
from attentest.interfaces.cli.written import checked
from attentest.results import files
from attentest.results.optional import Missing
from attentest.results.output import create
from attentest.studies.cluster import NoScheduler, cluster
from attentest.studies.comparison.compare import called
from attentest.studies.learning.learn import side_by_side
from attentest.studies.learning.participant import remote
from attentest.studies.learning.regime import (
    DECAYS,
    EQUAL,
    MODELS,
    OWN,
    PRECISIONS,
    SIZES,
    SPEC,
    Regime,
)
from attentest.studies.learning.result import Learning
from attentest.studies.learning.task import BadTask
from attentest.studies.learning.tasks import TASKS
from attentest.studies.participants import Participant
from attentest.views.learning import show
from attentest.views.plots.drawing import render
from attentest.views.plots.learning import learning_curves
from attentest.views.terminal import progress
from attentest_spec import CHOICES, registry

WORKERS = 2
"""The number of models that are trained at a time on this machine."""

_USUAL = Regime()


def _number(
    option: str, meaning: str, usual: float, name: str = "", kind: type = float
) -> options.Decorator:
    """Return an option for a number of a regime, with the default of most tasks in its help."""
    names = (option, name) if name else (option,)
    return click.option(*names, type=kind, help=f"{meaning} ({usual:g}).")


_REGIME = (
    click.option("--task", default="copy", show_default=True, help=f"One of {', '.join(TASKS)}."),
    click.option("--model", help=f"Kind of model: {' or '.join(MODELS)} ({_USUAL.model})."),
    click.option("--length", type=int, help="Tokens of a sequence; for addition, digits."),
    click.option("--steps", type=int, help="Steps of training (default: the task's own)."),
    click.option("--every", type=int, help="Steps from one validation to the next."),
    _number("--batch", "Sequences in a batch", _USUAL.batch, kind=int),
    click.option("--rate", type=float, help="A constant learning rate (default: the paper's)."),
    click.option(
        "--schedule", help=f"Learning rates: {', '.join(CHOICES['schedule'].names)} (noam)."
    ),
    _number("--factor", "Factor of all learning rates, the peak of all but noam", _USUAL.factor),
    _number("--warmup", "Steps of the warm-up", _USUAL.warmup, kind=int),
    _number("--smoothing", "Label smoothing", _USUAL.smoothing),
    _number("--beta2", "Adam's beta2", _USUAL.beta2),
    _number("--epsilon", "Adam's epsilon", _USUAL.epsilon),
    _number("--weight-decay", "Weight decay", _USUAL.weight_decay),
    click.option("--decay", help=f"Kind of weight decay: {' or '.join(DECAYS)} ({DECAYS[0]})."),
    click.option("--clip", type=float, help="Largest norm of all gradients together (no limit)."),
    click.option(
        "--parts",
        default=SPEC,
        show_default=True,
        help=f"Loss, rate, optimiser and decoding: the {SPEC}'s, or each backend's {OWN}.",
    ),
    click.option("--initial", default=EQUAL, show_default=True, help=f"Weights: {EQUAL} or {OWN}."),
    options.dtype("precision", precisions=PRECISIONS, default=_USUAL.precision),
    _number("--width", "Width of the model", SIZES["d_model"], "d_model", kind=int),
    _number("--inner-width", "Width inside of feed-forward", SIZES["d_ff"], "d_ff", kind=int),
    _number("--heads", "Heads of attention", SIZES["heads"], kind=int),
    _number("--layers", "Layers of each stack", SIZES["layers"], kind=int),
)
"""The options of a regime. A task may have defaults of its own, so that none is set here."""


def regime_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the options of a regime."""
    for option in reversed(_REGIME):
        command = option(command)
    return command


@click.command("learn")
@click.argument("targets", nargs=-1, metavar="[TARGET ..]")
@regime_options
@options.seed("weights and questions")
@options.seeds
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep checkpoints here; an interrupted training goes on.",
)
@click.option("--gradients", is_flag=True, help="Show the norms of gradients by part and step.")
@options.scheduler
@options.json_file
@options.plot
@options.isolated
def learn_command(
    targets: tuple[str, ...],
    seed: int,
    seeds: int,
    folder: Path | None,
    gradients: bool,
    scheduler: str,
    json_file: Path | None,
    plot: Path | None,
    isolation: Isolation,
    **asked: Any,
) -> None:
    """Train the models of TARGETS (all installed backends by default) on a small task.

    All get equal data, equal weights as far as their choices have a place for them, and equal steps
    of Adam. A TARGET is a name (see `attentest list backends`), FILE.py, FILE.py:OBJECT,
    MODULE:OBJECT, stdio:COMMAND or "paper NAME=OPTION ..". Exit code 0: all were trained, however
    well; 1: one failed; 2: usage; 3: one could not be loaded.
    """
    try:
        with usage():
            regime = Regime.of(**asked)
            named = _named(targets)
            checked("learning", json_file, plot)
            with _machines(scheduler, isolation) as (participant, workers):
                participants = {
                    label: participant(target)
                    for label, target in zip(called(named), named, strict=True)
                }
                numbers = range(seed, seed + seeds)
                found = _trained(participants, regime, numbers, folder, workers, isolation.stop)
            if not targets:
                found = replace(found, notes=(*found.notes, *_not_installed()))
            show(Console(), found, gradients=gradients)
            with late():
                files.write(json_file, "learning", found.as_dict())
            if plot is not None and found.curves:
                curves = learning_curves(found.as_dict(), gradients=gradients)
                create(plot, render(curves, plot.suffix[1:]))
    except (BadTask, Missing, NoScheduler) as wrong:
        raise Usage(str(wrong)) from wrong
    sys.exit(exit_code(found.failures, well=bool(found.curves) and not found.failures))


def _named(targets: tuple[str, ...]) -> list[str]:
    """Return the targets, all installed ones where none is named; refuse names that are none."""
    refuse_unknown(targets)
    named = list(targets or registry.installed())
    if not named:
        raise Usage("No backend is installed. Install one, or name a file.")
    return named


def _not_installed() -> tuple[str, ...]:
    left_out = registry.not_installed().items()
    return tuple(f"{name} was left out; its library is missing: {how}" for name, how in left_out)


@contextmanager
def _machines(
    scheduler: str, isolation: Isolation
) -> Iterator[tuple[Callable[[str], Participant], int]]:
    """Yield what makes a participant of a target, here or on a cluster, and how many there are."""
    if not scheduler:
        yield lambda target: remote(target, isolation), WORKERS
        return
    with cluster(0, scheduler) as machines:
        yield lambda target: machines.participant(remote(target, isolation)), machines.size


def _trained(
    participants: Mapping[str, Participant],
    regime: Regime,
    seeds: range,
    folder: Path | None,
    workers: int,
    stop: Event,
) -> Learning:
    with progress() as bar:
        listener = _listener(bar, list(participants), regime.steps * len(seeds))
        return side_by_side(
            participants,
            regime,
            tuple(seeds),
            folder,
            workers=workers,
            listener=listener,
            stop=stop,
        )


def _listener(bar: Progress, labels: list[str], total: int) -> Callable[[str, int, int], None]:
    tasks = {label: bar.add_task(escape(label), total=total) for label in labels}
    done: dict[tuple[str, int], int] = {}

    def step(label: str, seed: int, number: int) -> None:
        done[label, seed] = number
        completed = sum(count for (name, _), count in done.items() if name == label)
        bar.update(tasks[label], completed=completed)

    return step
