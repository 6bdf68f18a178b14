"""The `attentest` command."""

import errno
import os
import sys
from contextlib import suppress
from typing import Any

import click

from attentest.interfaces.cli.check import check_command
from attentest.interfaces.cli.compare import compare_command
from attentest.interfaces.cli.convert import convert_command
from attentest.interfaces.cli.cost import cost_command
from attentest.interfaces.cli.faults import faults_command
from attentest.interfaces.cli.identify import identify_command
from attentest.interfaces.cli.learn import learn_command
from attentest.interfaces.cli.new import new_command
from attentest.interfaces.cli.report import report_command
from attentest.interfaces.cli.run import run_command
from attentest.interfaces.cli.tell import explain_command, list_command
from attentest.interfaces.cli.trace import trace_command
from attentest.interfaces.cli.usage import Usage
from attentest.interfaces.cli.vectors import vectors_command
from attentest.version import __version__

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Commands(click.Group):
    """The commands; a full disk under whatever they write is one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except OSError as failure:
            if failure.errno not in _FULL:
                raise
            where = failure.filename or "The output"
            _discard_output()
            raise Usage(f"{where} could not be written: {failure.strerror}.") from failure


def _discard_output() -> None:
    """Send what is still to be written nowhere: Python flushes it again when it ends, and fails."""
    with suppress(OSError, ValueError):  # not every standard output is a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="attentest")
def main() -> None:
    """Tell whether a Transformer implementation is right, and how it differs from others."""


for command in (
    run_command,
    check_command,
    identify_command,
    compare_command,
    trace_command,
    report_command,
    learn_command,
    convert_command,
    cost_command,
    vectors_command,
    faults_command,
    new_command,
    list_command,
    explain_command,
):
    main.add_command(command)
