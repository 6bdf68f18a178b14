"""Options that several commands share: each means the same in all of them."""

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from attentest.harness.process import Isolation
from attentest.interfaces.cli.written import FILE
from attentest_spec.precision import PRECISIONS

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:  # older versions of click take no index
    ParamType = click.ParamType


class Number(ParamType):
    """A number in a range, which is named where it is left, and not in the help."""

    name = "number"

    def __init__(self, within: ParamType) -> None:
        self.within = within

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `value` as a number; fails outside of the range."""
        return self.within.convert(value, param, ctx)


# What is infinite cannot be written into a stream: JSON has no such number.
AMOUNT = Number(click.FloatRange(0, 1e9, min_open=True))
FROM_ZERO = Number(click.IntRange(min=0))
FROM_ONE = Number(click.IntRange(min=1))

Command = Callable[..., None]
Decorator = Callable[[Command], Command]


def dtype(
    *name: str, precisions: Iterable[str] = PRECISIONS, default: str = "", otherwise: str = ""
) -> Decorator:
    """Return the option `--dtype`, one of `precisions`; `otherwise` describes a default of ""."""
    return click.option(
        "--dtype",
        *name,
        default=default,
        show_default=otherwise or True,
        help=f"Precision of the arithmetic, one of {', '.join(precisions)}.",
    )


def seed(of: str) -> Decorator:
    """Return the option `--seed`, from which `of` is drawn."""
    return click.option(
        "--seed",
        default=0,
        show_default=True,
        type=FROM_ZERO,
        help=f"Seed of {of}.",
    )


seeds = click.option(
    "--seeds",
    default=1,
    show_default=True,
    type=FROM_ONE,
    help="Number of seeds, from that of --seed on.",
)

workers = click.option(
    "--workers",
    default=0,
    type=FROM_ZERO,
    help="Processes at a time (default: one for each core).",
)

scheduler = click.option(
    "--scheduler",
    default="",
    metavar="ADDRESS",
    help="Hand the work to the workers of this Dask scheduler.",
)

component = click.option(
    "--component", "components", multiple=True, help="This component alone (repeatable)."
)

json_file = click.option("--json", "json_file", type=FILE, help="Write the result to this file.")

html_file = click.option(
    "--html", "html_file", type=FILE, help="Write a report to this file, one page by itself."
)

plot = click.option("--plot", type=FILE, help="Draw the result into a new FILE.svg or FILE.png.")


def size(option: str, of: str, default: int, name: str = "") -> Decorator:
    """Return an option for a number `of` something, as an argument `name`."""
    return click.option(
        option,
        name or option.removeprefix("--"),
        default=default,
        show_default=True,
        help=f"{of}.",
    )


def limits(seconds: float) -> Decorator:
    """Return the options `--timeout`, by default `seconds`, and `--memory`."""
    timeout = click.option(
        "--timeout",
        default=seconds,
        show_default=True,
        type=AMOUNT,
        help="Seconds that a backend may take for one answer.",
    )
    memory = click.option(
        "--memory",
        default=4.0,
        show_default=True,
        type=AMOUNT,
        help="GiB that a backend's processes may use.",
    )
    return lambda command: timeout(memory(command))


def isolated(command: Command) -> Command:
    """Give `command` both options, as one argument `isolation`."""

    @functools.wraps(command)
    def limited(*, timeout: float, memory: float, **values: Any) -> None:
        command(isolation=Isolation(timeout, memory), **values)

    return limits(120.0)(limited)
