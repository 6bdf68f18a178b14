"""The directive `shell`: runs a command when the pages are built and shows what it printed.

    ```{shell} attentest run unscaled.py
    :exit: 1
    :until: to reproduce
    ```

It runs in docs/examples. The build fails where the exit code is another than the given one (0).
`from` and `until` show the part between the first line that holds the one and the first line after
it that holds the other.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
LIMIT = 300


class Shell(SphinxDirective):
    """Run a command and show it with its output."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"exit": int, "from": str, "until": str}  # noqa: RUF012  # docutils reads it so

    def run(self) -> list[nodes.Node]:
        """Return the command with what it printed as one block."""
        command = self.arguments[0]
        ended = ran(command)
        if ended.returncode != self.options.get("exit", 0):
            raise self.error(f"{command} ended with {ended.returncode}:\n{ended.stdout}")
        try:
            shown = cut(ended.stdout, self.options.get("from", ""), self.options.get("until", ""))
        except ValueError as failure:
            raise self.error(f"{command}: {failure}:\n{ended.stdout}") from failure
        return [nodes.literal_block(text := f"$ {command}\n{shown}", text, language="text")]


def ran(command: str) -> subprocess.CompletedProcess[str]:
    """Run `command` in the folder of the examples, with the scripts of this interpreter."""
    scripts = str(Path(sys.executable).parent)
    return subprocess.run(
        shlex.split(command),
        cwd=EXAMPLES,
        env={
            **os.environ,
            "PATH": os.pathsep.join([scripts, os.environ.get("PATH", "")]),
            "COLUMNS": "88",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def cut(text: str, start: str, end: str) -> str:
    """Return the lines from the first with `start` to the first with `end` behind it."""
    lines = [line.rstrip() for line in text.rstrip().splitlines()]
    first = next((i for i, line in enumerate(lines) if start in line), None)
    if first is None:
        raise ValueError(f"nothing printed holds {start!r}")
    last = next((i for i, line in enumerate(lines[first:], first) if end and end in line), None)
    if end and last is None:
        raise ValueError(f"nothing printed holds {end!r}")
    return "\n".join(
        ["..."] * bool(first)
        + lines[first : len(lines) if last is None else last + 1]
        + ["..."] * (last is not None and last + 1 < len(lines))
    )


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("shell", Shell)
    return {"parallel_read_safe": True}
