"""The `attentest` command."""

import errno
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from attentest.version import __version__

COMMANDS = {
    "run": "Judge backends by all clauses and print the matrix.",
    "check": "Judge a file, a function, a class or a program.",
    "identify": "Measure which option of every design choice code uses.",
    "compare": "Compare the choices and the numbers of two or more backends.",
    "trace": "Print every step with its values, compared with the reference.",
    "report": "Make one page of runs and results, and list what changed.",
    "learn": "Train models on a small task and compare their curves.",
    "sweep": "Train under many design choices and show what each changes.",
    "index": "Train with catalogued mistakes and count what shows them.",
    "convert": "Convert the checkpoint of one backend to that of another.",
    "cost": "Measure parameters, operations, time and memory.",
    "vectors": "Write test vectors for implementations in any language.",
    "faults": "Score the suite itself: inject mistakes, count the detected.",
    "new": "Write the folder of a new implementation.",
    "list": "Print all backends, clauses, choices, components or faults.",
    "explain": "Explain a clause, a choice, a component, a backend or a fault.",
}
"""The commands with one sentence each; the module of a command is imported when it is used."""

_MODULES = {
    "learn": "training.learn",
    "sweep": "training.sweep",
    "index": "training.index",
    "list": "tell",
    "explain": "tell",
}
"""The modules of those commands that have none of their own name."""

_JUDGING = ("run", "check")
"""The commands that start processes: theirs imports while the command itself is imported."""

_HELP = ("-h", "--help")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Commands(click.Group):
    """The commands; a full disk under whatever they write is one line and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _JUDGING and len(args) > 1 and not {*_HELP} & {*args}:
            import_module("attentest.harness.starting").prepare()
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"attentest.interfaces.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except OSError as failure:
            if failure.errno not in _FULL:
                raise
            usage = import_module("attentest.interfaces.cli.usage")  # not before it is needed
            where = failure.filename or "The output"
            _discard_output()
            raise usage.Usage(f"{where} could not be written: {failure.strerror}.") from failure


def _discard_output() -> None:
    """Send what is still to be written nowhere: Python flushes it again when it ends, and fails."""
    with suppress(OSError, ValueError):  # not every standard output is a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_Commands, context_settings={"help_option_names": [*_HELP]})
@click.version_option(__version__, prog_name="attentest")
def main() -> None:
    """Tell whether a Transformer implementation is right, and how it differs from others."""
