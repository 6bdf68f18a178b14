"""The options that limit what somebody's code may use of time and memory."""

import functools
from collections.abc import Callable
from typing import Any

import click

from attentest.harness.process import Isolation

# What is infinite cannot be written into a stream: JSON has no such number.
AMOUNT = click.FloatRange(0, 1e9, min_open=True)

Command = Callable[..., None]


def limits(seconds: float, of: str) -> Callable[[Command], Command]:
    """Return what gives a command `--timeout`, which limits `of`, and `--memory`."""
    timeout = click.option(
        "--timeout", default=seconds, show_default=True, type=AMOUNT, help=f"Seconds {of} may take."
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

    return limits(120.0, "a backend")(limited)
