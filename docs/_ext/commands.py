"""Runs the commands of a page: those of attentest in this process, all others in their own.

So the suite is imported once, and the process that forks the judging children, which has imported
torch, serves every command after the first.
"""

import os
import shlex
import subprocess
import sys
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from attentest.interfaces.cli.main import main

LIMIT = 300
"""Seconds that a command may take."""

ENVIRONMENT = {"COLUMNS": "88", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its exit status, and what it printed."""

    status: int
    printed: str


def run(command: str, folder: Path) -> Ended:
    """Run `command` in `folder`, with the scripts of this interpreter on the path."""
    program, *arguments = shlex.split(command)
    ended = _attentest(arguments, folder) if program == "attentest" else _other(command, folder)
    # A temporary folder has another name every time, and is of no use to a reader.
    return Ended(ended.status, ended.printed.replace(f"{folder.resolve()}", "/path/to/project"))


def _attentest(arguments: list[str], folder: Path) -> Ended:
    with chdir(folder):
        ended = CliRunner(env=ENVIRONMENT).invoke(main, arguments)
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return Ended(ended.exit_code, ended.output)


def _other(command: str, folder: Path) -> Ended:
    scripts = str(Path(sys.executable).parent)
    ended = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={
            **os.environ,
            **ENVIRONMENT,
            "PATH": os.pathsep.join([scripts, os.environ.get("PATH", "")]),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout)
