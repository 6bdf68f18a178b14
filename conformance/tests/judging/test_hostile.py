"""Backends that misbehave: each ends in the right verdict, and a sound neighbour does not notice.

Each is a file in `hostile/`. They are judged together, a few runs for all of them, and each run has
the sound one among them.
"""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from arrival import arrivals, hurried
from click.testing import CliRunner
from folders import SUPPORT
from hostile_cases import (
    ANSWERS,
    ATTENTION,
    HANGING,
    MAPS,
    MEASURED,
    PROJECTIONS,
    STATE,
    UNLOADED,
    Case,
    first_bad,
)
from jsonschema import Draft202012Validator
from rich.console import Console

from attentest.harness import process
from attentest.interfaces.cli.main import main
from attentest.judging.run import PATIENCE, run
from attentest.results import stream
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Run
from attentest.views import matrix

HOSTILE = SUPPORT / "hostile"
SOUND_ONE = HOSTILE / "sound.py"
HOUR = 3600.0


def judged(
    names: Iterable[str | Path],
    slugs: Sequence[str],
    *,
    limit: float = HOUR,
    memory: float = 4.0,
    workers: int = 2,
) -> dict[str, BackendRun]:
    """Judge the hostile backends `names`, or paths to them, beside the sound one."""
    plan = Plan(tuple(slugs), effort=0.3, shrink=False, diagnose=False, limit=limit, memory=memory)
    named = [HOSTILE / f"{one}.py" if isinstance(one, str) else one for one in names]
    paths = list(dict.fromkeys([*named, SOUND_ONE]))
    results = run([str(path) for path in paths], plan, workers=workers)
    return {path.stem: result for path, result in zip(paths, results, strict=True)}


@contextmanager
def beyond_its_limit() -> Iterator[None]:
    """Let an hour go by for each backend that has come to where it hangs."""
    with arrivals() as place, hurried(place, HOUR), pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOSTILE_PORT", str(place.port))
        yield


def told(result: BackendRun) -> list[tuple[str, str, str]]:
    return [(one.clause, one.status, one.message) for one in result.verdicts]


@pytest.fixture(scope="module")
def alone() -> list[tuple[str, str, str]]:
    """Verdicts of the correct backend when no other runs next to it."""
    return told(judged([], ATTENTION)["sound"])


def test_the_sound_one_is_sound(alone):
    assert {status for _, status, _ in alone} == {"pass"}


# Not loaded


@pytest.fixture(scope="module")
def no_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "no_python.py"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    return path


@pytest.fixture(scope="module")
def unloaded(no_python: Path) -> dict[str, BackendRun]:
    hanging = "hangs_at_import"
    others = [name for name in UNLOADED if name not in (hanging, "no_python")]
    found = judged([*others, no_python], ATTENTION)
    with beyond_its_limit(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "LOAD_LIMIT", HOUR)
        return judged([hanging], [], workers=1) | found


@pytest.mark.parametrize("name", UNLOADED)
def test_backend_that_does_not_load_reports_the_reason(unloaded, name):
    result = unloaded[name]
    assert UNLOADED[name] in result.failure
    assert name in result.failure
    assert not result.verdicts
    assert result.failure.isprintable()
    assert len(result.failure) < 1000


def test_neighbours_of_what_cannot_be_loaded_are_judged(unloaded, alone):
    assert told(unloaded["sound"]) == alone


# Wrong answers, errors, dead processes


@pytest.fixture(scope="module")
def answers() -> dict[str, BackendRun]:
    return judged([*ANSWERS, "keeps_state"], ATTENTION)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_hostile_backend_ends_in_the_right_verdict(answers, name):
    assert not answers[name].failure
    ANSWERS[name].agrees(answers[name])


def test_state_between_calls_is_found(answers):
    result = answers["keeps_state"]
    assert {one.status for one in result.verdicts if one.clause != STATE} >= {"violation"}
    assert "differs by" in first_bad(result).message


def test_neighbours_of_hostile_backends_are_untouched(answers, alone):
    assert told(answers["sound"]) == alone
    assert told(answers["name_of_another"]) == alone


def test_messages_are_short_and_plain(answers):
    for result in answers.values():
        for verdict in result.verdicts:
            assert verdict.message.isprintable(), verdict.message
            assert len(verdict.message) < 1200


def test_after_three_crashes_the_rest_is_not_tried(answers):
    messages = [one.message for one in answers["segfaults"].verdicts]
    assert ["not tried" in message for message in messages] == [False] * PATIENCE + [True]


def commands() -> set[str]:
    """Return the command lines of every process that runs."""
    return {" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])}


def test_no_child_survives(answers, hogs):
    assert not [one for one in commands() if "86399." in one]


# Names


def test_the_stream_of_hostile_backends_is_valid(answers, tmp_path):
    path = tmp_path / "stream.jsonl"
    results = list(answers.values())
    with path.open("w", encoding="utf-8") as file:
        file.write(stream.text(Run.of(Plan(ATTENTION), results)))
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    validator = Draft202012Validator(stream.schema())
    for event in events:
        validator.validate(event)
    told = [event["backend"] for event in events if event["type"] == "backend"]
    assert len(set(told)) == len(told) == len(results)


def test_the_matrix_of_hostile_backends_is_text(answers):
    shown = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=200)
    named = [answers[name] for name in ("name_with_markup", "name_of_a_megabyte", "raises_escapes")]
    matrix.show(shown, Run.of(Plan(ATTENTION), named))
    text = shown.file.getvalue()
    assert "[bold]red[/bold]" in text
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert len(text) < 50_000


# Time and memory


@pytest.fixture(scope="module")
def slow() -> dict[str, BackendRun]:
    with beyond_its_limit():
        slugs = ["attention.one-key", "feed_forward.shapes"]
        return judged([*HANGING, *MEASURED], slugs, workers=1)


@pytest.mark.parametrize("name", HANGING)
def test_hanging_backend_is_ended_and_the_run_continues(slow, name):
    first, last = slow[name].verdicts
    assert first.status == ("crash" if name.startswith("closes") else "timeout")
    assert HANGING[name] in first.message
    assert last.status == "absent"


@pytest.mark.parametrize("name", MEASURED)
def test_a_mishap_while_measuring_costs_no_verdict(slow, name):
    assert [one.status for one in slow[name].verdicts] == ["absent", "pass"]
    assert MEASURED[name] in slow[name].measured["measuring"]


def test_neighbours_of_what_hangs_are_judged(slow):
    assert [one.status for one in slow["sound"].verdicts] == ["pass", "absent"]


@pytest.fixture(scope="module")
def hogs() -> dict[str, BackendRun]:
    names = ["hogs_memory", "hogs_memory_in_a_child"]
    return judged(names, ["attention.one-key"], memory=0.75)


@pytest.mark.parametrize("name", ["hogs_memory", "hogs_memory_in_a_child"])
def test_a_memory_hog_is_ended_with_the_figures(hogs, name):
    (verdict,) = hogs[name].verdicts
    assert verdict.status == "crash"
    assert "GiB, the limit is 0.75 GiB; raise it with --memory" in verdict.message
    assert float(verdict.message.split()[3]) >= 0.75


def test_neighbours_of_a_memory_hog_are_judged(hogs):
    assert [one.status for one in hogs["sound"].verdicts] == ["pass"]


# Maps that lie, and what cannot be pickled


@pytest.fixture(scope="module")
def maps() -> dict[str, BackendRun]:
    return judged(list(MAPS), PROJECTIONS)


@pytest.mark.parametrize("name", MAPS)
def test_a_lying_map_is_found_out(maps, name):
    MAPS[name].agrees(maps[name])


def test_backend_that_cannot_be_pickled_gets_a_warning():
    asked = ["model.shapes", "model.pickle", "model.picklable"]
    found = judged(["cannot_be_pickled"], asked)["cannot_be_pickled"]
    Case("pass absent warning", "There is no pickled copy: cannot pickle").agrees(found)


# From the shell


def shell(*names: str | Path) -> tuple[int, str]:
    targets = [HOSTILE / f"{one}.py" if isinstance(one, str) else one for one in names]
    asked = ["--clause", "attention.one-key", "--no-shrink", "--timeout", "3600", "--workers", "1"]
    done = CliRunner().invoke(main, ["run", *map(str, targets), *asked])
    return done.exit_code, " ".join(done.output.split())


def test_a_crash_and_a_timeout_exit_with_1():
    with beyond_its_limit():
        code, output = shell("segfaults", "hangs_in_call", "sound")
    assert code == 1
    assert "the process ended with SIGSEGV" in output
    assert "no answer within 3600 seconds" in output
    assert "sound.py: 1 of 1 judged clauses conform" in output
    assert "Traceback" not in output


def test_exit_status_3_takes_precedence(no_python):
    code, output = shell(no_python, "raises_in_call")
    assert code == 3
    assert "SyntaxError" in output
    assert "out of luck" in output
    assert "Traceback" not in output


def test_backends_of_one_file_name_have_columns_of_their_own():
    targets = ["one/mine.py", "two/mine.py", "other.py"]
    run = Run.of(Plan(()), [BackendRun(one, failure="no") for one in targets])
    assert matrix.Matrix(run).headings() == targets
