"""The options of all commands: one name, one meaning; and what `--help` prints."""

import subprocess
import sys
from collections import defaultdict

import click
import pytest
from click.testing import CliRunner

from attentest.interfaces.cli.main import COMMANDS, main

SYNONYMS = (
    {"--dtype", "--precision"},
    {"--width", "--d-model", "--d_model"},
    {"--inner-width", "--d-ff", "--d_ff"},
    {"--workers", "--jobs", "--processes"},
)
"""Names of one meaning: the commands use one of each."""

HEAVY = ("torch", "numpy", "hypothesis", "jinja2", "matplotlib")


def command(name: str) -> click.Command:
    with click.Context(main, info_name="attentest") as context:
        found = main.get_command(context, name)
    assert found is not None
    return found


def options() -> dict[str, list[tuple[str, click.Option]]]:
    """Return every option of the commands by its long name, with the commands that have it."""
    found = defaultdict(list)
    for name in COMMANDS:
        for one in command(name).params:
            if isinstance(one, click.Option):
                found[max(one.opts, key=len)].append((name, one))
    return found


def help_of(*words: str) -> str:
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, [*words, "--help"]).output


@pytest.mark.parametrize("names", SYNONYMS, ids=lambda names: min(names))
def test_meaning_has_one_name(names: set[str]) -> None:
    assert len(names & set(options())) <= 1


@pytest.mark.parametrize("name", [name for name, all_of in options().items() if len(all_of) > 1])
def test_name_has_one_meaning(name: str) -> None:
    kinds = {(one.type.name, one.is_flag) for _, one in options()[name]}
    beginnings = {str(one.help).replace(",", " ").split()[0] for _, one in options()[name]}
    assert len(kinds) == 1
    assert len(beginnings) == 1


def test_every_command_has_one_sentence_in_the_overview() -> None:
    shown = help_of().partition("Commands:\n")[2].splitlines()
    assert len(shown) == len(COMMANDS)
    assert [line.split()[0] for line in shown] == list(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("..") for line in shown)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_has_no_cut_sentence_and_no_long_line(name: str) -> None:
    usage, _, text = help_of(*name.split()).partition("\n")
    assert "..." not in text
    assert all(len(line) <= 80 for line in [usage, *text.splitlines()])


def test_overview_imports_nothing_heavy() -> None:
    code = (
        "import sys; from attentest.interfaces.cli.main import main; "
        f"main(['--help'], standalone_mode=False); print(*[m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize("command", ["run", "check"])
def test_judging_without_a_report_imports_none(command: str) -> None:
    code = (
        f"import sys, attentest.interfaces.cli.{command}; "
        "print(*[m for m in sys.modules if m.startswith('attentest.views.html')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_numbers_out_of_range_are_refused() -> None:
    for words in ("run --workers -1", "run --seed -1", "faults --seeds 0", "learn --seeds 0"):
        result = CliRunner().invoke(main, words.split())
        assert result.exit_code == 2
        assert "is not in the range" in result.output
