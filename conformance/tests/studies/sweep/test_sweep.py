"""Sweeps that are interrupted, shared by workers, or fail in part."""

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from proof import share

import attentest
from attentest.interfaces.cli.main import main
from attentest.interfaces.cli.training.records import recorded
from attentest.results.output import Occupied
from attentest.studies import cluster
from attentest.studies.cluster import NoScheduler
from attentest.studies.learning.result import Point
from attentest.studies.learning.task import BadTask
from attentest.studies.sweep import engine
from attentest.studies.sweep.grid import Grid, Plan
from attentest.studies.sweep.record import Folder, Record
from attentest.studies.sweep.sweep import Sweep, over
from attentest.studies.sweep.training import blank, train
from attentest_spec import registry

SMALL = {"steps": 2, "batch": 2, "length": 3, "d_model": 8, "d_ff": 8, "heads": 2}
GRID = Grid(
    choices={"norm_placement": ("pre", "post")},
    axes={"layers": (1, 2)},
    seeds=(0, 1),
    settings=SMALL,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sweep, Path]:
    """Return the sweep over `GRID`, trained in this process, and its folder."""
    folder = tmp_path_factory.mktemp("records")
    return over(GRID, Folder(folder)), folder


def sweep(*words: str) -> Result:
    small = [f"--{name}={one}" for name, one in SMALL.items() if "_" not in name]
    return CliRunner(env={"COLUMNS": "100"}).invoke(
        main, ["sweep", *words, *small, "--width=8", "--inner-width=8"]
    )


@pytest.mark.proof
def test_every_training_is_a_record_that_pandas_reads(whole: tuple[Sweep, Path]) -> None:
    found, folder = whole
    assert len(found.records) == 8
    assert not found.failures
    pandas = pytest.importorskip("pandas")
    read = pandas.concat([pandas.read_json(one, lines=True) for one in folder.glob("*.jsonl")])
    assert sorted(read["seed"]) == [0] * 4 + [1] * 4
    frame = found.frame()
    assert list(frame.columns[:4]) == ["key", "norm_placement", "layers", "seed"]
    assert (frame["validation"] > 0).all()
    assert len(set(frame["validation"])) == 8


@pytest.mark.proof
def test_an_interrupted_sweep_goes_on_with_the_trainings_that_are_missing(
    whole: tuple[Sweep, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Plan] = []

    def counted(plan: Plan, code: str = "") -> Record:
        done.append(plan)
        return train(plan, code)

    def interrupt(record: Record) -> None:
        if len(done) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(engine, "train", counted)
    with pytest.raises(KeyboardInterrupt):
        over(GRID, Folder(tmp_path), listener=interrupt)
    assert len(list(tmp_path.glob("*.jsonl"))) == 3
    again = over(GRID, Folder(tmp_path))
    assert len(done) == 8
    assert again.as_dict() == whole[0].as_dict()


def test_a_record_that_was_cut_off_is_trained_again(
    whole: tuple[Sweep, Path], tmp_path: Path
) -> None:
    one = Grid(axes={"layers": (1,)}, settings=SMALL)
    before = over(one, Folder(tmp_path))
    (path,) = tmp_path.glob("*.jsonl")
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    assert over(one, Folder(tmp_path)).as_dict() == before.as_dict()
    assert json.loads(path.read_text())["key"] == path.stem


@pytest.mark.exhaustive
def test_records_take_no_memory_while_they_are_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = tuple(Point(step, None, 1.0, 0.5, 0.5) for step in range(20))
    monkeypatch.setattr(engine, "train", lambda plan, code="": replace(blank(plan), points=points))

    def alive() -> int:
        gc.collect()
        return sum(isinstance(one, Record) for one in gc.get_objects())

    before = alive()
    grid = Grid(axes={"layers": (1, 2)}, seeds=tuple(range(120)), settings=SMALL)
    found = over(grid, Folder(tmp_path))
    assert len(found.records) == 240
    assert alive() <= before + 2, "what was trained is read from the folder again, one at a time"
    held = list(found.records)
    assert alive() >= before + len(held), "the count sees what is held"
    assert found.records[239].points == points
    assert [one.seed for one in found.records[118:122]] == [118, 119, 0, 1]


def test_equal_plans_are_one_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Plan] = []
    heard: list[Record] = []

    def counted(plan: Plan, code: str = "") -> Record:
        done.append(plan)
        return train(plan, code)

    monkeypatch.setattr(engine, "train", counted)
    plans = Grid(seeds=(0, 1), settings=SMALL).plans
    found = engine.run([*plans, *plans], Folder(tmp_path), listener=heard.append)
    assert [one.seed for one in done] == [0, 1]
    assert sorted(one.seed for one in heard) == [0, 0, 1, 1]
    assert list(found[:2]) == list(found[2:])


def test_a_record_that_was_removed_is_named(tmp_path: Path) -> None:
    found = over(Grid(settings=SMALL), Folder(tmp_path))
    (path,) = tmp_path.glob("*.jsonl")
    path.unlink()
    with pytest.raises(Occupied, match=f"{path.stem} is no longer in"):
        found.rows()


def test_a_temporary_folder_is_removed_with_its_sweep() -> None:
    found = attentest.sweep(**SMALL)
    folder = found.records.folder.path
    assert found.records[0].end is not None
    assert list(folder.glob("*.jsonl"))
    del found
    gc.collect()
    assert not folder.exists()


def test_the_first_writer_of_a_record_wins(whole: tuple[Sweep, Path], tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    record = whole[0].records[0]
    folder.keep(record)
    before = folder.load(record.key)
    folder.keep(Record(record.key, "paper", "copy", {}, {}, 7, reason="later"))
    assert folder.load(record.key) == before
    assert [one.key for one in folder] == [record.key]
    assert not list(tmp_path.glob(".*.new"))


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(Occupied, match="something else"):
        Folder(tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


def test_a_training_that_fails_is_a_row_with_its_reason(tmp_path: Path) -> None:
    """A rate at which the loss is no number any more ends a training, and not the sweep."""
    grid = Grid(axes={"rate": (0.001, 1e25)}, settings=SMALL)
    found = over(grid, Folder(tmp_path))
    (failed,) = found.failures
    assert "diverged" in failed.reason or "not finite" in failed.reason
    assert [row[-1] for row in found.rows()][1:] == ["failed"]
    assert found.records[0].end is not None


def test_a_backend_without_choices_is_refused_before_it_is_trained(tmp_path: Path) -> None:
    target = registry.installed()[0]
    grid = Grid(target, choices={"norm_placement": ("pre", "post")}, settings=SMALL)
    with pytest.raises(BadTask, match=f"{target} cannot be built under other choices"):
        over(grid, Folder(tmp_path))


@pytest.mark.proof
def test_a_sweep_over_settings_takes_any_backend(tmp_path: Path) -> None:
    targets = [one for one in registry.installed() if "model" in registry.load(one).components]
    found = attentest.sweep(targets[0], axes={"layers": (1, 2)}, folder=tmp_path, **SMALL)
    assert not found.failures
    assert [row[0] for row in found.rows()] == ["1", "2"]


def test_shorter_training_questions_change_what_is_learned_and_not_what_is_asked() -> None:
    found = attentest.sweep(axes={"train_length": (3, 2)}, **SMALL)
    same, shorter = (one.end for one in found.records)
    assert same is not None
    assert shorter is not None
    assert same.validation != shorter.validation


@pytest.fixture(scope="module")
def workers() -> Iterator[str]:
    """Yield the address of a scheduler with two workers of one thread each."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.exhaustive
def test_workers_find_the_same_to_the_bit_though_one_is_killed(
    whole: tuple[Sweep, Path], workers: str, tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    killed: list[int] = []

    def kill(record: Record) -> None:
        if not killed:
            with distributed.Client(workers, set_as_default=False) as client:
                killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    found = over(GRID, Folder(tmp_path), scheduler=workers, listener=kill)
    assert killed
    assert found.as_dict() == whole[0].as_dict()
    assert len(list(Folder(tmp_path))) == 8


SCHEDULER = """
import sys
from distributed import LocalCluster
with LocalCluster(n_workers=1, processes=False, protocol="tcp://", dashboard_address=None) as one:
    print(one.scheduler_address, flush=True)
    sys.stdin.read()
"""


@contextmanager
def scheduler_with_a_worker() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the address of a scheduler, and the process that it and its worker run in."""
    pytest.importorskip("distributed")
    command = [sys.executable, "-c", SCHEDULER]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


@pytest.mark.proof
def test_a_killed_scheduler_loses_no_record(whole: tuple[Sweep, Path], tmp_path: Path) -> None:
    with (
        scheduler_with_a_worker() as (address, process),
        pytest.raises(NoScheduler, match=f"scheduler at {address} was lost"),
    ):
        over(GRID, Folder(tmp_path), scheduler=address, listener=lambda _: process.kill())
    before = {one.key: one.cpu_seconds for one in Folder(tmp_path)}
    assert 0 < len(before) < len(GRID.plans)
    assert over(GRID, Folder(tmp_path)).as_dict() == whole[0].as_dict()
    after = {one.key: one.cpu_seconds for one in Folder(tmp_path)}
    assert before.items() <= after.items()


def test_a_lost_scheduler_says_where_the_records_are(tmp_path: Path) -> None:
    with (
        pytest.raises(NoScheduler, match=r"Lost\. 0 of 4 trainings are in .*\. The same"),
        recorded(4, tmp_path),
    ):
        raise NoScheduler("Lost.")


def test_no_answer_of_a_scheduler_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "CONNECT", "300ms")
    found = sweep("--scheduler=tcp://127.0.0.1:9", f"--folder={tmp_path / 'new'}")
    assert found.exit_code == 2
    assert "No scheduler answers at tcp://127.0.0.1:9" in found.output


def test_the_command_shows_cells_effects_and_interactions(whole: tuple[Sweep, Path]) -> None:
    words = "--choice=norm_placement=pre,post", "--axis=layers=1,2", "--seeds=2"
    found = sweep(*words, f"--folder={whole[1]}")
    assert found.exit_code == 0, found.output
    assert "norm_placement  layers  seeds  held out" in found.output
    assert "Effects on held out, mean over 2 seeds" in found.output
    assert "Interactions in held out" in found.output
    assert "An interval needs 5 seeds." in found.output


@share(5)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--choice=norm_placement"], "not of the form NAME=A,B"),
        (["--choice=norm_placment=pre"], "norm_placement"),
        (["--axis=layers=1", "--axis=layers=2"], "more than once"),
        (["--axis=heads=3"], "multiple of heads"),
        (["--task=copy,sums"], "sums"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_before_it_begins(
    tmp_path: Path, words: list[str], message: str
) -> None:
    found = sweep(*words, f"--folder={tmp_path / 'new'}")
    assert found.exit_code == 2
    assert message in found.output
    assert not list(tmp_path.glob("new/*.jsonl"))
