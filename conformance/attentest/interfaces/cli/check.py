"""`attentest check`: one piece of code, from a bare function or class to a verdict."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from attentest.harness import process
from attentest.harness.errors import ProcessFailure, Unavailable
from attentest.harness.process import Isolation
from attentest.interfaces import files
from attentest.interfaces.cli.judging import Judging, judging
from attentest.interfaces.cli.pairs import choice, literal, pair
from attentest.interfaces.cli.usage import Unread, Usage, refuse_unknown, usage
from attentest.interfaces.cli.written import FILE
from attentest.results.output import Occupied, create, vacant
from attentest.results.plan import Plan
from attentest.targets import resolve
from attentest.targets.adapt import Reading
from attentest.targets.members import Member
from attentest.views.coloured import coloured
from attentest_spec import UnknownName
from attentest_spec.registry import LoadFailure

_SETTINGS = ("mask", "layout")


@click.command("check")
@click.argument("target")
@click.option("--as", "component", default="", help="The component that it is.")
@click.option(
    "--argument",
    "arguments",
    multiple=True,
    metavar="ROLE=NAME",
    help="Which argument carries an input (mask=src_mask) or a size (d_model=width).",
)
@click.option(
    "--give", "given", multiple=True, metavar="NAME=VALUE", help="Fix an argument (bias=False)."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="WORD=VALUE",
    help="A convention: mask=keep|blocks|additive, layout=batch-first|sequence-first.",
)
@click.option(
    "--choice", "choices", multiple=True, metavar="NAME=OPTION", help="Declare a design choice."
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=PATH",
    help="Which parameter of yours is which of the spec (self_attention_norm=norm2).",
)
@click.option("--strict", is_flag=True, help="Judge undeclared choices by the paper's.")
@click.option("--anyway", is_flag=True, help="Judge although the reading is in doubt.")
@click.option(
    "--write-adapter",
    "adapter_file",
    type=FILE,
    help="Write the backend that was inferred to this file, as Python.",
)
@judging
def check_command(
    target: str,
    component: str,
    arguments: tuple[str, ...],
    given: tuple[str, ...],
    settings: tuple[str, ...],
    choices: tuple[str, ...],
    parameters: tuple[str, ...],
    strict: bool,
    anyway: bool,
    adapter_file: Path | None,
    judging: Judging,
) -> None:
    """Judge one TARGET: FILE.py, FILE.py:OBJECT, MODULE:OBJECT or the name of a backend.

    FILE.py or MODULE alone means every component in it: a line for each comes first.
    A program that speaks the protocol of attentest on its standard streams is stdio:COMMAND.

    The object is a function, a class or a backend. How code that is no backend is called and
    built is inferred from its names, its documentation and a probing call. Exit code 0: it
    conforms; 1: it does not; 2: usage; 3: it could not be loaded or read, or nothing was judged; of
    a file also where one component could not be read and the others conform.
    """
    with usage():
        if not resolve.is_whole(target):
            refuse_unknown([target])
        reading = replace(
            _reading(component, arguments, given, settings, choices),
            parameters=dict(pair(one, "--parameter", "NAME=PATH") for one in parameters),
            strict=strict,
            anyway=anyway,
        ).as_dict()
        plan = judging.plan([component] if component else [], reading)
        if adapter_file is not None:
            vacant(adapter_file)
    isolation = Isolation(judging.timeout, judging.memory, process.LOAD_LIMIT)
    console, unlisted = Console(), ""
    if resolve.is_whole(target) and not component:
        members, unlisted = _members(target, isolation)
        if members is not None:
            known = list(files.targets(target, members))
            if adapter_file is not None and len(known) != 1:
                raise Usage(f"--write-adapter writes one adapter: name one of {', '.join(known)}.")
            _write(console, adapter_file, known, reading, isolation)
            _check_file(console, target, members, judging, plan)
    _write(console, adapter_file, [target], reading, isolation)
    found = judging.carried_out(console, [target], plan)
    provided = found[target].description.components
    shown = found.limited(provided)
    screen = judging.screen(console, shown)
    if not judging.annotated(console, shown):
        console.print(coloured(screen.report(shown[target], shown.plan)), soft_wrap=True)
    # A run in which nothing was judged must not look like one in which all is well.
    nothing = not any(verdict.status.judged for verdict in found[target].verdicts)
    if unlisted and not nothing:
        console.print(Text(unlisted), soft_wrap=True)
    sys.exit(3 if unlisted else found.exit_code or (3 if nothing else 0))


def _write(
    console: Console,
    file: Path | None,
    targets: list[str],
    reading: dict[str, Any],
    isolation: Isolation,
) -> None:
    """Write the adapter of the one target to `file`, where one is named; exit with 3 for none."""
    if file is None:
        return
    try:
        text = files.remote_adapter(targets[0], reading, isolation)
        create(file, text.encode())
    except (LoadFailure, Unavailable) as failure:
        console.print(Text(str(failure)), soft_wrap=True)
        sys.exit(3)
    except Occupied as wrong:
        raise Usage(str(wrong)) from wrong
    console.print(
        Text(f"The adapter is in {file}: edit it, then judge it with attentest run {file}"),
        soft_wrap=True,
    )


def _members(target: str, isolation: Isolation) -> tuple[list[Member] | None, str]:
    """Return the members of a whole file, and in a sentence why they cannot be listed.

    The members are None where it holds a backend or cannot be listed. Raises Unread where that
    takes too long, or ends its process: it would again.
    """
    try:
        return files.remote_members(target, isolation), ""
    except ProcessFailure as failure:
        waits = "What it runs where it is imported or built may wait, for a network for instance. "
        raise Unread(
            f"The components of {target} could not be listed: {failure}. "
            f"{waits if failure.status == 'timeout' else ''}Name them one by one, {target}:NAME."
        ) from failure
    except (LoadFailure, Unavailable) as failure:  # a worker that cannot load it says why
        return None, (
            f"The components of {target} could not be listed ({failure}), and others in it are not "
            f"judged: name each of them, {target}:NAME."
        )


def _check_file(
    console: Console, target: str, members: list[Member], judging: Judging, plan: Plan
) -> None:
    """Judge every member that is a component, print all, and exit."""
    run = judging.carried_out(console, list(files.targets(target, members)), plan)
    result = files.summary(target, members, run)
    screen = judging.screen(console, run)
    if judging.annotated(console, run):
        console.print(Text(result.last_line()), soft_wrap=True)
    else:
        console.print(coloured(result.text(screen)), soft_wrap=True)
    sys.exit(result.exit_code)


def _reading(
    component: str,
    arguments: Iterable[str],
    given: Iterable[str],
    settings: Iterable[str],
    choices: Iterable[str],
) -> Reading:
    words = dict(pair(one, "--set", "WORD=VALUE") for one in settings)
    for word in words:
        if word not in _SETTINGS:
            raise UnknownName("convention", word, _SETTINGS)
    try:
        return Reading(
            component=component,
            arguments=dict(pair(one, "--argument", "ROLE=NAME") for one in arguments),
            given={
                name: literal(value)
                for name, value in (pair(one, "--give", "NAME=VALUE") for one in given)
            },
            choices=dict(map(choice, choices)),
            mask=words.get("mask", ""),
            layout=words.get("layout", ""),
        )
    except ValueError as wrong:
        raise Usage(str(wrong)) from wrong
