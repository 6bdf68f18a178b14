"""Options and the run shared by the commands that judge."""

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import TaskID
from rich.text import Text

from attentest.interfaces.cli import options
from attentest.interfaces.cli.reporting import page_file, reporting
from attentest.interfaces.cli.usage import Usage, late
from attentest.interfaces.cli.written import distinct
from attentest.judging.run import Listener, run
from attentest.results import reproductions, stream
from attentest.results.blocks import block
from attentest.results.causes import causes
from attentest.results.expected_failures import ExpectedFailure
from attentest.results.output import opened
from attentest.results.plan import Plan, select, telling
from attentest.results.run import BackendRun, Run
from attentest.results.screen import Screen
from attentest.results.verdict import Verdict
from attentest.results.wording import summary
from attentest.views.annotations import annotations
from attentest.views.terminal import ProgressBar, progress

_OPTIONS = (
    click.option("--clause", "slugs", multiple=True, help="Judge this clause alone."),
    options.dtype(default="float64"),
    click.option("--device", default="cpu", show_default=True, help="Where the backend computes."),
    options.limits(60.0),
    click.option(
        "--effort",
        default=1.0,
        show_default=True,
        type=options.AMOUNT,
        help="Factor on the number of examples.",
    ),
    options.seed("all drawn inputs"),
    click.option("--random", "fresh", is_flag=True, help="Draw a fresh seed and print it."),
    click.option("--no-shrink", is_flag=True, help="Do not search the minimal counterexample."),
    click.option("--no-diagnose", is_flag=True, help="Do not search the likely causes."),
    click.option(
        "--fail-fast",
        is_flag=True,
        help="Stop at a backend's first failure; its formulas come first.",
    ),
    click.option("--full", is_flag=True, help="Print every clause that fails with all details."),
    click.option(
        "--format",
        "layout",
        type=click.Choice(["text", "github"]),
        default="text",
        show_default=True,
        help="github: a line for each cause, which a pull request shows at the code.",
    ),
    click.option(
        "--reproduce",
        "folder",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Write a runnable file for each cause into this folder.",
    ),
    options.json_file,
    options.html_file,
)


@dataclass(frozen=True)
class Judging:
    """The options of a judging command."""

    slugs: tuple[str, ...]
    dtype: str
    device: str
    timeout: float
    memory: float
    effort: float
    seed: int
    fresh: bool
    no_shrink: bool
    no_diagnose: bool
    fail_fast: bool
    full: bool
    layout: str
    folder: Path | None
    json_file: Path | None
    html_file: Path | None

    def plan(self, components: Sequence[str], reading: dict[str, Any] | None = None) -> Plan:
        """Return the plan for `components` (all where none is named); a seed is drawn here."""
        chosen = select(components, self.slugs, precision=self.dtype)
        if not chosen:
            raise Usage("No clause is left: the named clauses are not about the named components.")
        return Plan(
            telling(chosen) if self.fail_fast else chosen,
            precision=self.dtype,
            device=self.device,
            seed=random.SystemRandom().randrange(1, 2**31) if self.fresh else self.seed,
            effort=self.effort,
            shrink=not self.no_shrink,
            diagnose=not self.no_diagnose,
            limit=self.timeout,
            memory=self.memory,
            reading=reading,
        )

    def carried_out(
        self,
        console: Console,
        targets: Sequence[str],
        plan: Plan,
        workers: int = 0,
        not_installed: Mapping[str, str] = MappingProxyType({}),
        known: Sequence[ExpectedFailure] = (),
        scheduler: str = "",
    ) -> Run:
        """Judge `targets`, print the seed, write the stream and the report that were asked for.

        `scheduler` is the address of that of a cluster, "" for this machine. `not_installed` are
        backends that are left out, with the commands that install them; `known` are the expected
        failures that the report marks.
        """
        distinct(json=self.json_file, html=self.html_file)
        if plan.seed:
            console.print(f"seed {plan.seed} (replay with --seed {plan.seed})")
        with (
            reporting(),
            late(),
            opened(self.json_file, stream.BEGINNING) as file,
            late(),
            page_file(self.html_file) as html,
        ):
            planned = Run.of(plan, not_installed=not_installed)
            writer = stream.Writer(file, planned) if file else None
            judge = functools.partial(
                run, workers=workers, scheduler=scheduler, fail_fast=self.fail_fast
            )
            backends = _watched(targets, plan, judge, writer)
            judged = replace(planned, backends=backends)
            if writer:
                writer.close(judged)
            if html:
                html.write(_page(judged, known))
        return judged

    def screen(self, console: Console, judged: Run) -> Screen:
        """Return how `judged` is shown; the reproductions are written here, if asked for."""
        written = {}
        if self.folder is not None:
            with late():
                each = (causes(one.verdicts) for one in judged)
                written = reproductions.write((one for found in each for one in found), self.folder)
        return Screen(console.width, self.full, written)

    def annotated(self, console: Console, judged: Run) -> bool:
        """Print the annotations of a pull request, where they are asked for; say whether."""
        if self.layout != "github":
            return False
        found = causes(verdict for one in judged for verdict in one.verdicts)
        for line in annotations(found):
            console.print(Text(line), soft_wrap=True)
        for one in judged:
            line = f"{one.target}: {one.failure}" if one.failure else summary(one, judged.plan)
            console.print(Text(line), soft_wrap=True)
        return True


def _page(judged: Run, known: Sequence[ExpectedFailure]) -> str:
    from attentest.views.html.material import Material  # no other run needs these
    from attentest.views.html.page import page

    stored = stream.parsed(stream.text(judged), judged.name)
    return page(Material((stored,), known=tuple(known)))


def judging(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the options of judging, as one argument of this name."""
    names = [field.name for field in fields(Judging)]

    @functools.wraps(command)
    def collected(**values: Any) -> None:
        asked = Judging(**{name: values.pop(name) for name in names})
        command(judging=asked, **values)

    made: Callable[..., None] = collected
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


def _watched(
    targets: Sequence[str],
    plan: Plan,
    judge: Callable[..., Run],
    writer: stream.Writer | None,
) -> tuple[BackendRun, ...]:
    """Carry the plan out by `judge`, which is :func:`run` with its settings.

    There is a progress bar on a terminal, and the stream is written as verdicts come. The first
    cause shows above the bar as soon as it is known.
    """
    with progress() as bar:
        total = len(plan.clauses) + 1  # the first step is reading the code
        tasks = {
            target: bar.add_task(escape(f"{target}: reading the code"), total=total)
            for target in targets
        }
        return judge(targets, plan, listener=_listener(bar, tasks, plan, writer)).backends


def _listener(
    bar: ProgressBar, tasks: dict[str, TaskID], plan: Plan, writer: stream.Writer | None
) -> Listener:
    broken: list[Verdict] = []

    def listen(backend: BackendRun, verdict: Verdict | None) -> None:
        rest = plan.clauses[len(backend.verdicts) :]
        description = f"{backend.target}: {rest[0]}" if rest else backend.target
        bar.update(tasks[backend.target], advance=1, description=escape(description))
        if verdict and verdict.status.fails_run and not bar.disable:
            broken.append(verdict)
            bar.known = block(causes(broken)[0], 1, bar.console.width, name=len(tasks) > 1)
            bar.refresh()
        if writer:
            writer(backend, verdict)

    return listen
