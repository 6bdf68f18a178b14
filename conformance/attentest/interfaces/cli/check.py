"""`attentest check`: one piece of code, from a bare function or class to a verdict."""

import sys
from collections.abc import Iterable
from dataclasses import replace

import click
from rich.console import Console
from rich.text import Text

from attentest.interfaces.cli.judging import Judging, judging
from attentest.interfaces.cli.pairs import choice, literal, pair
from attentest.interfaces.cli.usage import Usage, refuse_unknown, usage
from attentest.results.wording import report
from attentest.targets.adapt import Reading
from attentest_spec import UnknownName

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
    judging: Judging,
) -> None:
    """Judge one TARGET: FILE.py:OBJECT, MODULE:OBJECT, FILE.py or the name of a backend.

    A program that speaks the protocol of attentest on its standard streams is stdio:COMMAND.

    The object is a function, a class or a backend. How code that is no backend is called and
    built is inferred from its names, its documentation and a probing call. Exit code 0: it
    conforms; 1: it does not, or nothing was judged; 2: usage; 3: it could not be loaded or read.
    """
    with usage():
        refuse_unknown([target])
        plan = judging.plan(
            [component] if component else [],
            replace(
                _reading(component, arguments, given, settings, choices),
                parameters=dict(pair(one, "--parameter", "NAME=PATH") for one in parameters),
                strict=strict,
                anyway=anyway,
            ).as_dict(),
        )
    console = Console()
    found = judging.carried_out(console, [target], plan)
    provided = found[target].description.components
    shown = found.limited(provided)
    console.print(Text(report(shown[target], shown.plan)), soft_wrap=True)
    if provided:
        console.print()
    # A run in which nothing was judged must not look like one in which all is well.
    nothing = not any(verdict.status.judged for verdict in found[target].verdicts)
    sys.exit(found.exit_code or int(nothing))


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
