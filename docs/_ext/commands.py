"""Runs the commands of a page without starting Python anew for each.

Those of attentest run in this process: so the suite is imported once, and the process that forks
the judging children, which has imported torch, serves every command after the first. Scripts and
tests run in a fork of this process. All others are started.
"""

import os
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

from click.testing import CliRunner

from attentest.interfaces.cli.main import main

LIMIT = 300
"""Seconds that a started command may take."""

ENVIRONMENT = {"COLUMNS": "88", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its exit status, and what it printed."""

    status: int
    printed: str


def run(command: str, folder: Path) -> Ended:
    """Run `command` in `folder`, with the scripts of this interpreter on the path."""
    match shlex.split(command):
        case ["attentest", *arguments]:
            ended = _attentest(arguments, folder)
        case ["pytest", *arguments]:
            ended = _forked(partial(_pytest, arguments), folder)
        case ["python", script, *arguments] if script.endswith(".py"):
            ended = _forked(partial(_python, script, arguments), folder)
        case words:
            ended = _started(words, folder)
    # A temporary folder has another name every time, and is of no use to a reader.
    return Ended(ended.status, ended.printed.replace(f"{folder.resolve()}", "/path/to/project"))


def _attentest(arguments: list[str], folder: Path) -> Ended:
    with chdir(folder):
        ended = CliRunner(env=ENVIRONMENT).invoke(main, arguments)
    if ended.exception and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return Ended(ended.exit_code, ended.output)


def _pytest(arguments: list[str]) -> int:
    import pytest

    # It warns of what this process has imported before.
    return int(pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *arguments]))


def _python(script: str, arguments: list[str]) -> int:
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path.cwd()))
    runpy.run_path(script, run_name="__main__")
    return 0


def _forked(program: Callable[[], int], folder: Path) -> Ended:
    """Run `program` in a fork of this process, which has imported what takes long."""
    import torch  # noqa: F401

    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _be_child(program, folder, write)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as printed:
        text = printed.read()
    return Ended(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text)


def _be_child(program: Callable[[], int], folder: Path, output: int) -> NoReturn:
    """Run `program` with its output in a pipe, and end without taking down what is loaded."""
    status = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        os.environ.update(ENVIRONMENT)
        sys.dont_write_bytecode = True
        status = program()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as failure:  # the page says what it was
        sys.excepthook(type(failure), failure, failure.__traceback__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _started(words: list[str], folder: Path) -> Ended:
    scripts = str(Path(sys.executable).parent)
    path = os.pathsep.join([scripts, os.environ.get("PATH", "")])
    ended = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout)
