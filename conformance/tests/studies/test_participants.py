"""Participants: the same answers here and in a process of their own; failures are collected."""

import numpy as np
import pytest
from folders import SUPPORT

from attentest.harness.errors import Unavailable
from attentest.harness.process import Isolation
from attentest.studies import identification
from attentest.studies.comparison import participant as compared
from attentest.studies.comparison.recording import Event
from attentest.studies.participants import Failure, Local, Remote, ask, gather
from attentest.targets import resolve
from attentest_spec.registry import LoadFailure

SOUND = str(SUPPORT / "hostile" / "sound.py")


def test_local_and_remote_participants_give_the_same_answers() -> None:
    asked = {"components": ["attention"], "precision": "", "device": "cpu"}
    here = Local(identification.methods(resolve.load(SOUND)))
    there = Remote(identification.__name__, (SOUND,), Isolation())
    assert here.call("identify", **asked) == there.call("identify", **asked)


def test_steps_are_bit_exact_in_a_recording() -> None:
    values = np.array([[0.1, np.nan], [np.inf, -0.0]])
    again = Event.from_dict(Event((values,), values.T).as_dict())
    assert again.inputs[0].tobytes() == values.tobytes()
    assert again.output.tobytes() == values.T.tobytes()


def test_a_target_that_cannot_be_loaded_is_a_load_failure() -> None:
    there = compared.remote(f"{SOUND}:nobody", Isolation())
    with pytest.raises(LoadFailure, match="no object named 'nobody'"):
        compared.account(there)


def test_answers_that_cannot_be_read_are_unavailable() -> None:
    with pytest.raises(Unavailable, match="its answer cannot be read: TypeError"):
        ask(Local({"account": lambda: 7}), "account", len)


def test_failures_are_collected_by_name_and_in_order() -> None:
    def fails(failure: Exception) -> str:
        raise failure

    answers, failures = gather(
        {
            ("a", 1): lambda: fails(Unavailable("it is tired")),
            ("b", 1): lambda: "well",
            ("c", 1): lambda: fails(LoadFailure("it is not there")),
        },
        name=lambda key: key[0],
        workers=2,
    )
    assert answers == {("b", 1): "well"}
    assert failures == [
        Failure("a", "it is tired", loaded=True),
        Failure("c", "it is not there", loaded=False),
    ]


def test_other_exceptions_are_no_failures() -> None:
    def wrong() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        gather({"a": wrong})
