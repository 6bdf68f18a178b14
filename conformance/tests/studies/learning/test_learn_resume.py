"""A training that is interrupted goes on and ends bit for bit as one that was not."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from arrival import GUARD, arrivals, interruptible
from learning import FUSED, PLAIN, same_state, small, trained
from proof import share
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from attentest.results.output import Occupied
from attentest.studies.learning import Regime, learn
from attentest.studies.learning.checkpoint import OURS, State, load_state, save_state
from attentest.studies.learning.folder import checkpoints

MARKS = {"backend": "plain", "sizes": {"layers": 1}}
GIVEN = {"length": 5, "d_model": 8, "heads": 2, "d_ff": 12, "steps": 6, "every": 2}


class Interruption(BaseException):
    pass


def interrupting(after: int):
    def listener(label: str, seed: int, step: int) -> None:
        if step == after:
            raise Interruption

    return listener


def states(folder: Path) -> dict[str, bytes]:
    """Return what the checkpoints of a folder hold, the time they took left out."""
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


@share(3, rest=1)
@pytest.mark.parametrize("after", [1, 2, 5])
def test_an_interrupted_training_ends_as_one_that_was_not(tmp_path, after):
    whole = learn(PLAIN, **GIVEN)
    with pytest.raises(Interruption):
        learn(PLAIN, **GIVEN, folder=tmp_path, listener=interrupting(after))
    heard = []
    again = learn(PLAIN, **GIVEN, folder=tmp_path, listener=lambda *one: heard.append(one))
    assert heard[0] == ("plain", 0, after // 2 * 2 + 1)
    assert again.curves[0].points == whole.curves[0].points
    same_arrays(tmp_path, trained(PLAIN, Regime.of(**GIVEN)))


def same_arrays(folder: Path, state: State) -> None:
    """Demand that the one checkpoint in a folder holds the weights and moments of `state`."""
    (path,) = folder.glob("*.safetensors")
    kinds = {"parameters": state.parameters, "first": state.first, "second": state.second}
    wanted = {f"{kind}/{name}": one for kind, table in kinds.items() for name, one in table.items()}
    held = load_file(path)
    assert held.keys() == wanted.keys()
    for name, values in wanted.items():
        assert values.tobytes() == held[name].tobytes(), name


def test_a_training_that_is_done_is_read_and_not_done_again(tmp_path):
    once = learn(PLAIN, **GIVEN, folder=tmp_path)
    before = states(tmp_path)
    heard = []
    again = learn(PLAIN, **GIVEN, folder=tmp_path, listener=lambda *one: heard.append(one))
    assert (again.curves, heard) == (once.curves, [])
    assert states(tmp_path) == before


@pytest.mark.proof
def test_a_folder_takes_more_backends_and_more_seeds(tmp_path):
    learn(PLAIN, **GIVEN, folder=tmp_path)
    before = states(tmp_path)
    learn(PLAIN, FUSED, **GIVEN, seeds=2, folder=tmp_path)
    after = states(tmp_path)
    assert len(after) == 4
    assert before.items() <= after.items()


def test_a_state_survives_its_file_bit_for_bit(tmp_path):
    state = trained(PLAIN, small(precision="float32"))
    save_state(tmp_path / "a.safetensors", state, MARKS)
    found = load_state(tmp_path / "a.safetensors", MARKS)
    assert found is not None
    same_state(found, state)
    assert (found.seconds, found.cpu_seconds) == (state.seconds, state.cpu_seconds)
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_nothing_there_is_no_state(tmp_path):
    assert load_state(tmp_path / "a.safetensors", MARKS) is None


def test_a_state_of_another_training_is_refused_with_what_differs(tmp_path):
    path = tmp_path / "a.safetensors"
    save_state(path, trained(PLAIN, small()), MARKS)
    with pytest.raises(Occupied, match="layers is 1 there and 2 here"):
        load_state(path, {**MARKS, "sizes": {"layers": 2}})


def test_a_folder_of_another_regime_is_refused_with_what_differs(tmp_path):
    learn(PLAIN, **GIVEN, folder=tmp_path)
    before = states(tmp_path)
    with pytest.raises(Occupied, match="steps is 6 there and 8 here; every is 2 there and 4 here"):
        learn(PLAIN, **{**GIVEN, "steps": 8, "every": 4}, folder=tmp_path)
    assert states(tmp_path) == before


def test_files_of_others_are_left_as_they_are(tmp_path):
    save_file({"w": np.zeros(2)}, tmp_path / "plain.seed-0.safetensors")
    before = states(tmp_path)
    with pytest.raises(Occupied, match="no checkpoint of this command"):
        learn(PLAIN, **GIVEN, folder=tmp_path)
    assert states(tmp_path) == before
    (tmp_path / "other").mkdir()
    for mine in ("mine", "[]"):
        (tmp_path / "other" / "regime.json").write_text(mine)
        with pytest.raises(Occupied, match="is not what this command writes"):
            learn(PLAIN, **GIVEN, folder=tmp_path / "other")
    with pytest.raises(Occupied, match="cannot be used as a folder"):
        learn(PLAIN, **GIVEN, folder=tmp_path / "other" / "regime.json")


def test_two_trainings_do_not_share_a_folder(tmp_path):
    with (
        checkpoints(tmp_path, small()),
        pytest.raises(Occupied, match="under way"),
        checkpoints(tmp_path, small()),
    ):
        pass


def test_labels_that_are_no_file_names_have_files_of_their_own(tmp_path):
    with checkpoints(tmp_path, small()) as place:
        paths = [place(label, 0) for label in ("plain", "a/b.py:c", "a/b.py_c", "../up", "x" * 300)]
    assert len(set(paths)) == 5
    assert {path.parent for path in paths} == {tmp_path}
    assert max(len(path.name) for path in paths) < 100
    assert paths[0].name == "plain.seed-0.safetensors"


TARGET = """
import os, socket, time
from dataclasses import fields
from attentest.faults.reference_models import Plain, reference_backend

plain = reference_backend(Plain, {"tying": "none"}, "plain")
steps = 0

class Hanging(type(plain)):
    def build(self, *given, **named):
        part = super().build(*given, **named)
        vjp = part.vjp

        def pulled(*given):
            global steps
            steps += 1
            if steps == 13 and "PORT" in os.environ:
                arrived = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])))
                time.sleep(86400)
            return vjp(*given)

        part.vjp = pulled
        return part

backend = Hanging(**{one.name: getattr(plain, one.name) for one in fields(plain)})
"""
LONG = {"length": 4, "d_model": 8, "heads": 2, "d_ff": 12, "steps": 20, "every": 5}


def step(folder: Path) -> int:
    """Return the step that the one checkpoint in a folder is at, 0 where there is none."""
    for path in folder.glob("*.safetensors"):
        with safe_open(path, framework="np") as file:
            found: int = json.loads(file.metadata()[OURS])["step"]
            return found
    return 0


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_run_goes_on_to_the_same_end(tmp_path, monkeypatch, how):
    target, folder = tmp_path / "of_a_run.py", tmp_path / "killed"
    target.write_text(TARGET)
    option = {"d_model": "width", "d_ff": "inner-width"}
    words = [f"--{option.get(name, name)}={value}" for name, value in LONG.items()]
    with arrivals() as place, interruptible(), monkeypatch.context() as patch:
        patch.setenv("PORT", str(place.port))
        run = subprocess.Popen(
            [sys.executable, "-m", "attentest", "learn", str(target), *words, f"--folder={folder}"],
            stderr=subprocess.DEVNULL,
        )
        worker = place.wait()
        os.kill(run.pid, how)
        assert run.wait(GUARD) != 0
        worker.wait_for_end()
    assert step(folder) == 10
    heard = []
    found = learn(str(target), **LONG, folder=folder, listener=lambda *one: heard.append(one[-1]))
    assert heard[0] == 11
    assert found.curves[0].points == learn(PLAIN, **LONG).curves[0].points
    same_arrays(folder, trained(PLAIN, Regime.of(**LONG)))
