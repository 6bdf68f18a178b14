"""Prints what a verdict costs: ratios to `import torch`, measured in one run of `python speed.py`.

A multi-head attention that is right and one that is wrong are checked, a backend is judged in full
with one worker and with two, four together with two workers, and all with one. The commands are run
in turn, several rounds, and the median is taken: the machine's speed drifts, the ratios much less.
The ratios of CPU time hold on a busy machine too: half of that of four backends is what two workers
need on two idle cores, if neither waits for the other.

They write to a terminal, since the first block of a mistake shows there while the rest is judged.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from attentest_spec import registry

ATTENTEST = [sys.executable, "-m", "attentest"]

RIGHT = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"{d_model} columns cannot be divided among {heads} heads")
        self.heads = heads
        self.query, self.key, self.value, self.output = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.query(query), self.key(key), self.value(value)
        q, k, v = self.split(q), self.split(k), self.split(v)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        mixed = scores.softmax(-1) @ v
        return self.output(mixed.transpose(1, 2).flatten(2))
"""
WRONG = RIGHT.replace(" / q.shape[-1] ** 0.5", "")

TORCH, BLOCK = "import torch", "the first block of the wrong one"
FULL = "one backend in full with one worker, the slowest"
TWO = "the same backend with two workers"
FOUR, ALL = "four backends with two workers", "all with one worker"


@dataclass(frozen=True)
class Taken:
    """Seconds that a command took: on the clock, of the processor, and until its first block.

    The first block of a cause begins with a file and a line; where none is shown, `first` is the
    whole time.
    """

    wall: float
    cpu: float
    first: float


def taken(command: list[str], folder: Path, codes: tuple[int, ...] = (0,)) -> Taken:
    """Run `command` in `folder` and return what it took; its exit code has to be one of `codes`."""
    ours, theirs = pty.openpty()
    shown: list[float] = []
    start, used = time.perf_counter(), _used()
    reader = threading.Thread(target=_read_screen, args=(ours, shown))
    reader.start()
    code = subprocess.call(command, cwd=folder, stdout=theirs, stderr=theirs, stdin=theirs)
    wall, cpu = time.perf_counter() - start, _used() - used
    os.close(theirs)
    reader.join()
    os.close(ours)
    if code not in codes:
        raise SystemExit(f"{command} ended with {code}")
    return Taken(wall, cpu, shown[0] - start if shown else wall)


def _read_screen(terminal: int, shown: list[float]) -> None:
    """Read what a command writes on its terminal; add the time of the first block to `shown`."""
    text = b""
    while True:
        try:
            text += os.read(terminal, 2**16)
        except OSError:  # the other end is closed
            return
        if not shown and re.search(rb"\d  \w+\.py:\d+  ", text):
            shown.append(time.perf_counter())


def _used() -> float:
    """Return the CPU seconds of all processes that were started from here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


@click.command()
@click.option("--rounds", default=3, show_default=True, help="How often everything is measured.")
@click.option("--quick", is_flag=True, help="Judge the first backend in full, and no others.")
def main(rounds: int, quick: bool) -> None:
    """Measure, and print the ratios beside their bounds."""
    names = registry.installed()
    run = [*ATTENTEST, "run"]
    commands = {
        TORCH: [sys.executable, "-c", "import torch"],
        "a right multi-head attention": [*ATTENTEST, "check", "right.py"],
        "a wrong multi-head attention": [*ATTENTEST, "check", "wrong.py", "--reproduce", "causes"],
    }
    commands |= {name: [*run, name, "--workers", "1"] for name in (names[:1] if quick else names)}
    if not quick:
        commands[FOUR] = [*run, *names[:4], "--workers", "2"]
        commands[ALL] = [*run, *names, "--workers", "1"]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "right.py").write_text(RIGHT, encoding="utf-8")
        (folder / "wrong.py").write_text(WRONG, encoding="utf-8")
        taken(commands[TORCH], folder)  # the file cache is warm from here on
        found: dict[str, list[Taken]] = {what: [] for what in commands}
        for _ in track(range(rounds), description="rounds", console=Console(stderr=True)):
            for what, command in commands.items():
                found[what].append(taken(command, folder, (0, 1)))
        slowest = max((one for one in names if one in found), key=lambda one: found[one][0].wall)
        divided = [*run, slowest, "--workers", "2"]
        found[TWO] = [taken(divided, folder, (0, 1)) for _ in range(rounds)]
    _show({what: _middle(several) for what, several in found.items()}, names)


def _middle(several: list[Taken]) -> Taken:
    return Taken(*(median(getattr(one, of) for one in several) for of in ("wall", "cpu", "first")))


def _show(middle: dict[str, Taken], names: list[str]) -> None:
    """Print every ratio with its bound, and the seconds."""
    torch = middle[TORCH]
    ones = [middle[name] for name in names if name in middle]
    middle[FULL] = max(ones, key=lambda one: one.wall)
    bounds = {"a right multi-head attention": 4.0, "a wrong multi-head attention": 6.0}
    bounds |= dict.fromkeys((FULL, TWO), 7.0)
    rows: list[tuple[str, float | None, float | None, float]] = [
        (f"{what} / {TORCH}", middle[what].wall / torch.wall, middle[what].cpu / torch.cpu, bound)
        for what, bound in bounds.items()
    ]
    block = middle["a wrong multi-head attention"].first / torch.wall
    rows.insert(2, (f"{BLOCK} / {TORCH}", block, None, 3.0))
    for what, of, bound in ((FOUR, names[:4], 1.8), (ALL, names, float(len(names)))):
        if together := middle.get(what):
            alone = [middle[name] for name in of]
            wall, cpu = (mean(getattr(one, kind) for one in alone) for kind in ("wall", "cpu"))
            ratio = f"{what} / one of these (mean)"
            of_cpu = together.cpu / cpu
            rows.append((ratio, together.wall / wall, of_cpu, bound))
            if what == FOUR:
                rows.append(("the same on two idle cores, at best", None, of_cpu / 2, bound))
    table = Table(box=None)
    for heading in ("ratio", "on the clock", "of CPU time", "bound"):
        table.add_column(heading)
    for what, *ratios, bound in rows:
        numbers = (f"{one:.2f}" if one else "" for one in ratios)
        table.add_row(what, *numbers, f"{bound:g}")
    console = Console()
    console.print(table)
    for what, one in middle.items():
        console.print(f"{what}: {one.wall:.2f} s, {one.cpu:.2f} s of CPU time")


if __name__ == "__main__":
    main()
