"""A full disk: one line, an exit code, and everything that was found on the screen."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from folders import SUPPORT
from own import OWN
from proof import share

from attentest.interfaces.cli.main import main
from attentest.results import output
from attentest.results.output import Unwritten, opened, replacing

FULL = Path("/dev/full")
MINIATURES = SUPPORT / "miniatures.py"
GOOD, WRONG = f"{MINIATURES}:good", f"{MINIATURES}:wrong"
ONE = ("--clause", "attention.formula", "--no-shrink")
LEARN = ("learn", OWN[0], "--steps", "1", "--every", "1", "--batch", "1", "--layers", "1")

COMMANDS = {
    "run": (("run", GOOD, *ONE), "1 of 1 judged clauses conform"),
    "check": (("check", WRONG, *ONE), "0 of 1 judged clauses conform"),
    "compare": (("compare", GOOD, WRONG), "attention"),
    "trace": (("trace", WRONG), "attention"),
    "faults": (("faults", "attention.scale-missing", "--own"), "1 of 1"),
    "learn": ((*LEARN, "--width", "4", "--heads", "1", "--inner-width", "4"), OWN[0]),
}

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


def command(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def assert_reported(result: Result, shown: str) -> None:
    """Demand what was found on the screen, and the reason as the one line of stderr."""
    assert result.exit_code == 2, result.output
    assert shown in " ".join(result.stdout.split())
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: /dev/full could not be written: No space left on device.")


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize("name", COMMANDS)
def test_full_disk_under_json_costs_no_results(name: str) -> None:
    words, shown = COMMANDS[name]
    assert_reported(command(*words, "--json", str(FULL)), shown)


@share(3, rest=1)
@pytest.mark.parametrize("name", ["run", "check", "compare"])
def test_full_disk_under_html_costs_no_results(name: str) -> None:
    words, shown = COMMANDS[name]
    assert_reported(command(*words, "--html", str(FULL)), shown)


def test_one_full_disk_costs_one_file(tmp_path: Path) -> None:
    words, shown = COMMANDS["compare"]
    other = tmp_path / "comparison.json"
    assert_reported(command(*words, "--json", str(other), "--html", str(FULL)), shown)
    assert other.read_text().endswith("}\n")


def test_report_of_two_runs_is_on_the_screen(tmp_path: Path) -> None:
    runs = [str(tmp_path / name) for name in ("old.jsonl", "new.jsonl")]
    for file in runs:
        command("run", GOOD, *ONE, "--json", file)
    assert_reported(command("report", *runs, "--json", str(FULL)), "no regression")
    assert_reported(command("report", *runs, "--html", str(FULL)), "no regression")


@pytest.mark.proof
@pytest.mark.parametrize("words", [("list", "clauses"), ("run", GOOD, *ONE)])
def test_full_disk_under_the_screen_is_one_line(words: tuple[str, ...]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "attentest", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "Error: The output could not be written: No space left on device.\n"


@pytest.mark.parametrize("way", [opened, replacing])
def test_file_that_cannot_be_written_is_reported_once_at_the_end(way) -> None:
    written = []

    def work() -> None:
        with way(FULL, "{") as file:
            for _ in range(3):
                file.write("{" * 10_000)
                file.flush()
                written.append(True)

    with pytest.raises(Unwritten, match="/dev/full could not be written: No space left"):
        work()
    assert len(written) == 3


def test_error_of_the_work_is_not_hidden_by_the_disk() -> None:
    def work() -> None:
        with opened(FULL, "{") as file:
            assert file is not None
            file.write("{")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()


def test_device_is_not_taken_for_a_foreign_file() -> None:
    assert output.replaceable(Path("/dev/null"), "{") == Path("/dev/null")
