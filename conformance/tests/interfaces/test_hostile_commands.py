"""Every command that runs somebody's code, with hostile backends: it survives and says why.

Hanging is ended by limits that are shorter than any answer; all else is waited for, however slow
the machine is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import psutil
import pytest
from click.testing import CliRunner, Result
from folders import SUPPORT
from proof import share
from safetensors.numpy import save
from started import started

from attentest.harness import process
from attentest.interfaces.cli.main import main

pytestmark = pytest.mark.xdist_group("hostile commands")  # their results are shared

AT_BUILD = f"{SUPPORT / 'hostile' / 'at_build.py'}"
AT_IMPORT = f"{SUPPORT / 'hostile' / 'hangs_at_import.py'}"
SLEEPING = "86398."

LOST = {
    "hog": "GiB, the limit is 0.5 GiB; raise it with --memory",
    "many": "processes, the limit is 32",
    "killed": "the process ended with SIGKILL",
    "detached": "the process ended with exit code 8",
}
"""Backends that cost the process, with words of the reason."""

DISTURBED = {
    "closed": "it closed the pipe to its parent",
    "writing": "something else than the suite wrote",
    "forging": "its answer cannot be read",
}
"""The same, by what it does to its pipes."""

NOT_LOST = {
    "exiting": "SystemExit: 7",
    "rude": "",
}
"""Backends whose process survives, with words of the answer."""


@dataclass(frozen=True)
class Command:
    """A command line: its words, and whether it takes several targets at a time."""

    words: str
    several: bool = False
    least: int = 1
    lost: Mapping[str, str] = field(default_factory=lambda: LOST)

    def run(self, *targets: str, limits: str = "--memory 0.5") -> Result:
        """Run it on `targets`; where a backend is a TARGET of the words, it takes that place."""
        named = targets * (self.least if len(targets) < self.least else 1)
        words = [word.replace("TARGET", targets[0]) for word in self.words.split()]
        given = [] if "TARGET" in self.words else named
        result = CliRunner(env={"COLUMNS": "500"}).invoke(main, [*words, *given, *limits.split()])
        assert not left_behind()
        return result


def left_behind() -> set[str]:
    """Return the command lines of processes that a command started and did not end."""
    running = {" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])}
    return {one for one in running if SLEEPING in one} | {str(one) for one in started()}


COMMANDS = {
    "run": Command(
        "run --clause feed_forward.shapes --no-shrink --workers 2",
        several=True,
        lost={**LOST, **DISTURBED, "forging": "something else than the suite wrote"},
    ),
    "check": Command("check --clause feed_forward.shapes --no-shrink"),
    "identify": Command("identify --component feed_forward"),
    "compare": Command("compare", several=True, least=2, lost={**LOST, **DISTURBED}),
    "trace": Command("trace"),
    "cost": Command(
        "cost --component feed_forward --dtype float64 --repeat 1 --lengths 2 --widths 4 "
        "--length 2 --width 4 --heads 2 --layers 1",
        several=True,
    ),
    "learn": Command("learn --steps 1 --length 4 --width 8 --heads 2", several=True),
    "convert": Command(
        f"convert in.safetensors out.safetensors --from TARGET --to {AT_BUILD}:whole"
    ),
}

SEVERAL = [name for name, one in COMMANDS.items() if one.several]


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Work in a folder with a checkpoint."""
    path = tmp_path_factory.mktemp("hostile")
    (path / "in.safetensors").write_bytes(save({"weight": np.ones(2)}))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        yield path


@cache
def together(name: str) -> Result:
    """Run a command that takes several targets on all of them, a harmless one at the end."""
    given = {**COMMANDS[name].lost, **NOT_LOST}
    return COMMANDS[name].run(*(f"{AT_BUILD}:{one}" for one in given), AT_BUILD)


def demand(result: Result, code: int, reason: str) -> None:
    assert result.exit_code == code, result.output
    assert reason in " ".join(result.output.split()), result.output
    assert "Traceback" not in result.output


@share(4)
@pytest.mark.parametrize("name", SEVERAL)
def test_a_command_reports_every_process_that_is_lost(name: str) -> None:
    for reason in COMMANDS[name].lost.values():
        demand(together(name), 1, reason)


@pytest.mark.parametrize("harm", LOST)
@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - SEVERAL))
def test_a_command_reports_a_process_that_is_lost(name: str, harm: str) -> None:
    demand(COMMANDS[name].run(f"{AT_BUILD}:{harm}"), 1, LOST[harm])


@pytest.mark.proof
@pytest.mark.parametrize("name", SEVERAL)
def test_an_exception_is_an_answer_like_any_other(name: str) -> None:
    demand(together(name), 1, NOT_LOST["exiting"])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_a_backend_that_hangs_when_it_is_built(name: str) -> None:
    result = COMMANDS[name].run(f"{AT_BUILD}:hanging", limits="--timeout 0.5")
    demand(result, 1, "no answer within 0.5 seconds")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_a_backend_that_hangs_at_its_import(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LOAD_LIMIT", 0.5)
    result = COMMANDS[name].run(AT_IMPORT, limits="--timeout 0.5")
    code = 3 if name in ("run", "check") else 1
    demand(result, code, "no answer within 0.5 seconds")


HARMLESS = {
    "run": "{}: 1 of 1 judged clauses conform",
    "compare": "{} 0e+00",
    "cost": "{}",
    "learn": "{} provides no encoder-decoder model and was left out",
}
"""Text reported of neighbours, and of backends that affect only themselves."""


@pytest.mark.parametrize("name", HARMLESS)
def test_neighbours_of_hostile_backends_have_their_results(name: str) -> None:
    said = " ".join(together(name).output.split())
    for target in (AT_BUILD, f"{AT_BUILD}:rude"):
        assert HARMLESS[name].format(target) in said
        assert f"{target} was not" not in said
