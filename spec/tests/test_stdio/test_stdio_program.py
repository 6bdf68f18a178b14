"""Programs as backends: the contract, and programs that break the protocol."""

import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest

from attentest_spec import Backend, Part, Sizes, Unsupported
from attentest_spec.stdio import Program, ProgramFailure, pipe
from attentest_spec.stdio.pipe import Pipe

PROGRAM = Path(__file__).with_name("stdio_program.py")
COMMAND = [sys.executable, "-S", "-E", str(PROGRAM)]


def left() -> list[psutil.Process]:
    """Return the programs that this process has started and not ended."""
    return [one for one in psutil.Process().children() if str(PROGRAM) in one.cmdline()]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a program that is about to end, on a busy machine too."""
    monkeypatch.setattr(pipe, "PATIENCE", 60.0)


@contextmanager
def program(moment: str = "") -> Iterator[Program]:
    """Start the program that misbehaves at `moment`; nothing of it may be left at the end."""
    started = Program([*COMMAND, moment])
    try:
        yield started
    finally:
        started.close()
    assert not left()


@contextmanager
def part(moment: str = "") -> Iterator[Part]:
    with program(moment) as started:
        yield started.build("layer_norm", Sizes())


@contextmanager
def impatient(backend: Program) -> Iterator[None]:
    """Wait a moment alone for answers that never come; every other answer has all the time."""
    ample, backend.limit = backend.limit, 0.1
    try:
        yield
    finally:
        backend.limit = ample


# A program that behaves


def test_program_is_the_backend_that_it_describes() -> None:
    with program() as backend:
        assert isinstance(backend, Backend)
        assert (backend.name, backend.title) == ("told", "a program")
        assert backend.components == ("layer_norm", "feed_forward")
        assert backend.choices == {"norm_epsilon": 1e-6}
        assert (backend.limits.heads, backend.limits.layers) == (4, None)
        assert (backend.limits.precisions, backend.limits.dropout) == (("float64",), False)


def test_part_meets_the_contract() -> None:
    with part() as built:
        built.load({"gain": np.ones(6)})
        assert built.export()["gain"].tolist() == [1.0]
        assert built(np.zeros((1, 6)), None, 3).tolist() == [1.0]
        gradient = built.vjp((np.zeros((1, 6)), None), np.ones((1, 6)))
        assert gradient.inputs[1] is None
        assert gradient.parameters["gain"].tolist() == gradient.output.tolist() == [1.0]
        built.train()
        built.eval()


def test_several_outputs_are_a_tuple_with_none_for_missing_ones() -> None:
    with part("weights") as built:
        output, weights = built(np.zeros(1))
        assert (output.tolist(), weights) == ([1.0], None)


def test_capabilities_outside_of_the_protocol_are_unsupported() -> None:
    with program() as backend, pytest.raises(Unsupported, match="runs on its own device"):
        backend.build("layer_norm", Sizes(), device="meta")
    with part() as built:
        for asked in (
            built.reloaded,
            lambda: built.copied("pickle"),
            lambda: built.moved("float32"),
            lambda: built.placed((), "meta"),
            built.inventory,
            built.global_state,
        ):
            with pytest.raises(Unsupported):
                asked()


@pytest.mark.parametrize(
    ("kind", "becomes"),
    [
        ("value", ValueError),
        ("index", IndexError),
        ("type", TypeError),
        ("unsupported", Unsupported),
        ("internal", RuntimeError),
    ],
)
def test_error_becomes_the_exception_of_the_contract(kind, becomes) -> None:
    with part(kind) as built:
        with pytest.raises(becomes, match="7 is too much"):
            built(np.zeros(1))
        assert built.export()  # and the program goes on


def test_program_may_refuse_to_release() -> None:
    with program("knows_no_release") as backend:
        backend.build("layer_norm", Sizes())
        gc.collect()
        assert backend.build("layer_norm", Sizes()).export()


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes]]:
    """Requests and answers, line by line."""
    heard: list[tuple[bytes, bytes]] = []
    ask = Pipe.ask

    def listened(self: Pipe, line: bytes, limit: float) -> bytes:
        answer = ask(self, line, limit)
        heard.append((line, answer))
        return answer

    monkeypatch.setattr(Pipe, "ask", listened)
    return heard


def test_unreferenced_parts_are_released(messages) -> None:
    with program() as backend:
        backend.build("layer_norm", Sizes())
        gc.collect()
        backend.build("layer_norm", Sizes())
    asked = [json.loads(one)["do"] for one, _ in messages[-5:]]
    assert asked == ["start", "describe", "build", "release", "build"]


# Programs that misbehave


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("another_protocol", "its protocol is 2, and the protocol here is 1"),
        ("no_protocol", "its protocol is None"),
        ("no_name", "it lacks 'name'"),
        ("odd_title", "5 is not of the type str"),
        ("odd_component", "did you mean layer_norm"),
        ("odd_limit", "did you mean heads"),
        ("odd_heads", "'four' is not of the type int"),
        ("odd_memory_mask", "did you mean padding"),
        ("odd_precision", "did you mean float64"),
        ("odd_capability", "no capability named 'grad'"),
        ("dies_at_start", "it ended with exit code 3; its stderr ends: all was well / out of luck"),
    ],
)
def test_malformed_description_is_not_loaded(moment, words) -> None:
    with pytest.raises(ProgramFailure) as failure:
        Program([*COMMAND, moment])
    assert words in str(failure.value)
    assert not left()


def test_missing_program_is_reported() -> None:
    with pytest.raises(ProgramFailure, match=r"could not be started: .*No such file"):
        Program(["no-such-program-anywhere"])


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("no_outputs", "it has no output"),
        ("short", r"3 numbers of float64 in the shape \(3,\) take 24 bytes, and data has 8"),
        ("negative", "is not a list of whole numbers"),
        ("odd_dtype", "the dtype 'float8' is not one of float64"),
        ("odd_data", "data is not base64"),
        ("odd_tensor", "a tensor has dtype, shape and data"),
        ("odd_bool", "a bool is a byte 0 or 1"),
        ("odd_kind", "it lacks 'odd'"),
        ("odd_error", "its answer is malformed"),
    ],
)
def test_malformed_answer_costs_one_error(moment, words) -> None:
    with part(moment) as built:
        with pytest.raises(ProgramFailure, match=words):
            built(np.zeros(1))
        assert built.export()


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("garbage", "it wrote 'loading weights..', which is not an answer"),
        ("list", r"it wrote '\[1\]', which is not an answer"),
        ("deep", "which is not an answer"),
        ("other_id", "it answered request 99 instead of request 4"),
        ("dies", "asked to call, it ended with exit code 3; its stderr ends: .*out of luck"),
        ("killed", "it ended with SIGKILL"),
        ("closes", "it closed its standard output"),
    ],
)
def test_program_that_breaks_the_protocol_is_restarted(monkeypatch, moment, words) -> None:
    if moment == "closes":
        monkeypatch.setattr(pipe, "PATIENCE", 0.1)  # it never ends
    with program(moment) as backend:
        built = backend.build("layer_norm", Sizes())
        with pytest.raises(ProgramFailure, match=words):
            built(np.zeros(1))
        assert not left()
        with pytest.raises(ProgramFailure, match="the program that held this part has ended"):
            built.export()
        assert backend.build("layer_norm", Sizes()).export()


def test_part_without_a_number_is_refused() -> None:
    with program("odd_handle") as backend, pytest.raises(ProgramFailure, match="malformed"):
        backend.build("layer_norm", Sizes())


def test_extra_answer_is_noticed_at_the_next_request() -> None:
    with part("extra") as built:
        with pytest.raises(ProgramFailure, match="it has no output"):
            built(np.zeros(1))
        with pytest.raises(ProgramFailure, match="it answered request 4 instead of request 5"):
            built.export()


@pytest.mark.parametrize("moment", ["hangs", "complains"])
def test_program_without_an_answer_is_killed(moment) -> None:
    with program(moment) as backend:
        built = backend.build("layer_norm", Sizes())
        with impatient(backend), pytest.raises(ProgramFailure, match=r"within 0\.1 seconds"):
            built(np.zeros(1))
        assert not left()


def test_program_without_an_answer_at_start_is_not_loaded() -> None:
    with pytest.raises(ProgramFailure, match=r"asked to start, no answer within 0\.1 seconds"):
        Program([*COMMAND, "hangs_at_start"], limit=0.1)
    assert not left()


def test_program_that_does_not_read_blocks_nothing() -> None:
    with program("reads_no_more") as backend:
        built = backend.build("layer_norm", Sizes())
        with impatient(backend), pytest.raises(ProgramFailure, match="no answer within"):
            built(np.zeros((300, 300)))


def test_program_without_three_answers_is_not_started_again() -> None:
    with program("hangs") as backend:
        for _ in range(3):
            built = backend.build("layer_norm", Sizes())
            with impatient(backend), pytest.raises(ProgramFailure, match="no answer within"):
                built(np.zeros(1))
        with pytest.raises(ProgramFailure, match="no answer 3 times and is not started again"):
            backend.build("layer_norm", Sizes())


def test_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "LONGEST", 2**20)
    with part("floods") as built, pytest.raises(ProgramFailure, match="more than 1 MiB"):
        built(np.zeros(1))


def test_standard_error_is_read_while_waiting() -> None:
    with part("chatters") as built:
        assert built(np.zeros(1)).tolist() == [1.0]


def test_program_that_does_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "PATIENCE", 0.1)
    with program("deaf_at_stop"):
        pass


def test_unreferenced_program_is_stopped() -> None:
    Program([*COMMAND, "sound"])
    gc.collect()
    assert not left()
