"""The command, as a user types it."""

import json
import subprocess
import sys
from io import StringIO

import pytest
from click.testing import CliRunner, Result
from folders import SUPPORT
from rich.console import Console

from attentest.harness import starting
from attentest.interfaces.cli.judging import _listener
from attentest.interfaces.cli.main import main
from attentest.results import stream
from attentest.results.plan import Plan
from attentest.results.run import BackendRun
from attentest.results.verdict import Status, Verdict
from attentest.views.terminal import ProgressBar, progress
from attentest_spec import CHOICES, COMPONENTS, registry
from attentest_spec.clauses import clauses

MINIATURES = SUPPORT / "miniatures.py"
ONE = ("--clause", "attention.one-key")


def command(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("run", "seccond"), "second"),
        (("run", f"{MINIATURES}:good", "--clause", "attention.formulas"), "attention.formula"),
        (("run", f"{MINIATURES}:good", "--component", "atention"), "attention"),
        (("run", f"{MINIATURES}:good", "--dtype", "float65"), "float64"),
        (("explain", "mask_fil"), "mask_fill"),
    ],
)
def test_an_unknown_name_suggests_the_nearest_and_exits_with_2(words, near, monkeypatch):
    monkeypatch.setattr(registry, "names", lambda: ["first", "second"])
    result = command(*words)
    assert result.exit_code == 2
    assert near in result.output
    assert "Traceback" not in result.output


def test_clauses_that_are_not_about_the_component_are_a_usage_error():
    result = command("run", f"{MINIATURES}:good", "--component", "model", *ONE)
    assert result.exit_code == 2
    assert "No clause is left" in result.output


def test_run_prints_the_matrix_and_the_summary():
    result = command("run", f"{MINIATURES}:good", *ONE, "--all")
    assert result.exit_code == 0, result.output
    assert "one-key" in result.output
    said = " ".join(result.output.split())
    assert "1 of 1 judged clauses conform, of 1 in all (1 pass)" in said
    assert "mask_fill" in result.output


def test_a_violation_is_told_in_order_and_exits_with_1():
    words = ("--clause", "attention.formula", "--no-shrink", "--full")
    result = command("run", f"{MINIATURES}:wrong", *words)
    assert result.exit_code == 1
    labels = [
        "demands:",
        "found:",
        "counterexample:",
        "to reproduce:",
        "why it matters:",
        "read on:",
    ]
    places = [result.output.index(word) for word in labels]
    assert places == sorted(places)


def test_run_stops_at_the_first_failure_and_writes_what_reproduces_it(tmp_path):
    slugs = ("attention.shapes", "attention.one-key", "attention.formula")
    words = [word for slug in slugs for word in ("--clause", slug)]
    folder = tmp_path / "new" / "folder"
    result = command(
        *("run", f"{MINIATURES}:wrong", *words, "--no-shrink", "--fail-fast"),
        *("--reproduce", str(folder), "--format", "github"),
    )
    assert result.exit_code == 1, result.output
    assert result.output.startswith("::error title=attentest%3A attention.formula::")
    assert (
        "0 of 1 judged clauses conform, of 3 in all (1 violation); 2 clauses got" in result.output
    )
    (file,) = folder.iterdir()
    compile(file.read_text(), file.name, "exec")


def test_progress_counts_the_reading_of_the_code_and_names_the_next_clause():
    plan = Plan(("attention.shapes", "attention.formula"))
    backend = BackendRun("mine")
    with progress() as bar:
        task = bar.add_task("mine: reading the code", total=3)
        listen = _listener(bar, {"mine": task}, plan, None)
        listen(backend, None)
        (shown,) = bar.tasks
        assert (shown.completed, shown.description) == (1, "mine: attention.shapes")
        for slug in plan.clauses:
            backend.verdicts.append(Verdict("mine", slug, "pass"))
            listen(backend, backend.verdicts[-1])
        assert (shown.completed, shown.description) == (3, "mine")


def test_progress_shows_the_first_cause_as_soon_as_it_is_known():
    plan = Plan(("attention.shapes", "attention.formula", "attention.one-key"))
    backend = BackendRun("mine")
    console = Console(width=80, file=StringIO(), force_terminal=True)
    with ProgressBar(console=console, transient=True) as bar:
        listen = _listener(bar, {"mine": bar.add_task("", total=4)}, plan, None)
        for slug, status in zip(plan.clauses, ("pass", "violation", "violation"), strict=True):
            assert bool(bar.known) == (slug == "attention.one-key")
            backend.verdicts.append(Verdict("mine", slug, Status(status), "It differs."))
            listen(backend, backend.verdicts[-1])
        assert bar.known.startswith("1  It differs.\n   breaks attention.formula: ")
        assert "It differs." in console.file.getvalue()


@pytest.mark.proof
def test_an_error_that_is_raised_again_and_again_is_told_once():
    words = ("--clause", "attention.formula", "--clause", "attention.shapes")
    raising = MINIATURES.with_name("hostile") / "raises_in_call.py"
    result = command("run", str(raising), *words)
    assert result.exit_code == 1
    assert result.output.count("error: ") == 1
    assert "also breaks 1 clause: shapes" in result.output
    assert "the same: attention.shapes" in command("run", str(raising), *words, "--full").output


def test_a_backend_that_cannot_be_loaded_exits_with_3_and_others_still_run():
    result = command("run", f"{MINIATURES}:nobody", f"{MINIATURES}:wrong", *ONE)
    assert result.exit_code == 3
    assert "no object named 'nobody'" in result.output
    assert "1 of 1 judged clauses conform" in " ".join(result.output.split())


def test_the_stream_is_written_and_a_foreign_file_is_not_overwritten(tmp_path):
    target = tmp_path / "out.jsonl"
    for _ in range(2):  # an earlier stream may be replaced
        assert command("run", f"{MINIATURES}:good", *ONE, "--json", str(target)).exit_code == 0
    events = [json.loads(line) for line in target.read_text().splitlines()]
    assert [event["type"] for event in events] == [
        "header",
        "backend",
        "case",
        "measured",
        "footer",
    ]
    assert events[0]["format"] == stream.FORMAT
    mine = tmp_path / "thesis.txt"
    mine.write_text("three years of work")
    result = command("run", f"{MINIATURES}:good", *ONE, "--json", str(mine))
    assert result.exit_code == 2
    assert mine.read_text() == "three years of work"


def test_a_seed_can_be_drawn_and_is_told():
    result = command("run", f"{MINIATURES}:good", *ONE, "--random")
    assert "replay with --seed" in result.output


@pytest.mark.parametrize(
    ("kind", "names"),
    [("clauses", clauses()), ("choices", CHOICES), ("components", COMPONENTS)],
)
def test_list_prints_one_item_a_line_its_name_first(kind, names):
    lines = command("list", kind).output.splitlines()
    assert [line.split()[0] for line in lines] == list(names)


@pytest.mark.parametrize("name", ["attention.formula", "mask_fill", "multi_head_attention"])
def test_explain_tells_what_the_spec_says(name):
    result = command("explain", name)
    assert result.exit_code == 0
    assert result.output.startswith(name)
    assert len(result.output.splitlines()) > 5


def test_the_installed_command_starts():
    done = subprocess.run(
        [sys.executable, "-m", "attentest", "--version"], capture_output=True, text=True, check=True
    )
    assert "attentest" in done.stdout


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (("run", "no-such-backend"), True),
        (("check", "no_such_file.py"), True),
        (("run", "--help"), False),
        (("list", "choices"), False),
    ],
)
def test_commands_that_judge_start_processes_before_they_are_imported(words, starts, monkeypatch):
    calls: list[int] = []
    monkeypatch.setattr(starting, "prepare", lambda: calls.append(1))
    command(*words)
    assert bool(calls) is starts


def test_start_of_processes_imports_no_package_that_takes_long():
    code = "import sys, attentest.harness.starting; print({'numpy', 'psutil'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
