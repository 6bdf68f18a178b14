"""Prints what a verdict costs: ratios measured in one run of `python speed.py`.

One backend's whole verdict against the time of `import torch`, and all backends in one run against
one backend's, with one and with two workers. The commands are run in turn, several rounds, and the
median is taken: the machine's speed drifts, the ratios much less.
"""

import subprocess
import sys
import time
from statistics import median

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from attentest_spec import registry

ATTENTEST = [sys.executable, "-m", "attentest", "run"]


def seconds(command: list[str]) -> float:
    """Return the wall time of `command`, which has to succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


@click.command()
@click.option("--rounds", default=3, show_default=True, help="How often everything is measured.")
def main(rounds: int) -> None:
    """Measure, and print the ratios beside their bounds."""
    names = registry.installed()
    commands = {"import torch": [sys.executable, "-c", "import torch"]}
    commands |= {name: [*ATTENTEST, name, "--workers", "1"] for name in names}
    commands |= {f"all, {n} worker(s)": [*ATTENTEST, *names, "--workers", str(n)] for n in (1, 2)}
    seconds(commands["import torch"])  # the file cache is warm from here on
    taken: dict[str, list[float]] = {what: [] for what in commands}
    for _ in track(range(rounds), description="rounds", console=Console(stderr=True)):
        for what, command in commands.items():
            taken[what].append(seconds(command))
    _show({what: median(times) for what, times in taken.items()}, names)


def _show(middle: dict[str, float], names: list[str]) -> None:
    slowest = max(names, key=middle.__getitem__)
    mean = sum(middle[name] for name in names) / len(names)
    ratios = {
        f"one backend ({slowest}, the slowest) / import torch": (
            middle[slowest] / middle["import torch"],
            12.0,
        ),
        f"all {len(names)}, two workers / one (mean)": (middle["all, 2 worker(s)"] / mean, 3.0),
        f"all {len(names)}, one worker / one (mean)": (middle["all, 1 worker(s)"] / mean, 4.0),
    }
    table = Table(box=None)
    for heading in ("ratio", "measured", "bound"):
        table.add_column(heading)
    for what, (ratio, bound) in ratios.items():
        table.add_row(what, f"{ratio:.2f}", f"{bound:g}")
    console = Console()
    console.print(table)
    console.print({what: f"{time_:.2f} s" for what, time_ in middle.items()})


if __name__ == "__main__":
    main()
