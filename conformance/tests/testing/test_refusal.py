"""The assertion that a backend refuses: any exception does, and some help more than others."""

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest
from oracle_backend import OracleBackend

from attentest.harness.errors import Absent, BackendError, Shortcoming, Violation
from attentest.harness.subject import Subject, guarded
from attentest.testing.refusal import explains_refusal, refuses

DOING = "building 7 columns for 2 heads"


@pytest.fixture
def subject() -> Subject:
    return Subject(OracleBackend())


def raising(error: BaseException) -> Callable[[], NoReturn]:
    """Return an action in which a backend raises `error`."""

    def action() -> NoReturn:
        with guarded("building"):
            raise error
        raise AssertionError("the guard lets nothing through")

    return action


@pytest.mark.parametrize("kind", [ValueError, IndexError, UnicodeError])
def test_refusal_with_the_numbers_is_one(subject: Subject, kind: type[Exception]) -> None:
    explains_refusal(subject, DOING, raising(kind("7 columns, 2 heads")), naming=(7, 2))
    refuses(subject, DOING, raising(kind("no numbers")))


@pytest.mark.parametrize("kind", [RuntimeError, KeyError, AssertionError, TypeError, SystemExit])
def test_refusal_by_another_error_falls_short(subject: Subject, kind: type[BaseException]) -> None:
    text = rf"^{DOING} is refused by oracle with an error that is neither a ValueError nor an "
    with pytest.raises(Shortcoming, match=text + "IndexError: " + kind.__name__) as caught:
        explains_refusal(subject, DOING, raising(kind("7 and 2")), naming=(7, 2))
    assert isinstance(caught.value.__cause__, kind)
    refuses(subject, DOING, raising(kind("7 and 2")))  # where no number can be named


def test_an_answer_has_no_wording(subject: Subject) -> None:
    explains_refusal(subject, DOING, lambda: np.zeros((2, 7)), naming=(7, 2))


def test_any_of_the_numbers_may_be_enough(subject: Subject) -> None:
    explains_refusal(
        subject, DOING, raising(ValueError("2 heads")), naming=(7, 2), any_of_them=True
    )
    with pytest.raises(Shortcoming, match="does not name 7 or 2: ValueError: no"):
        explains_refusal(subject, DOING, raising(ValueError("no")), naming=(7, 2), any_of_them=True)


@pytest.mark.parametrize(
    ("answer", "said"),
    [(np.zeros((2, 7)), r"an array of shape \(2, 7\)"), (None, "no error"), (3, "no error")],
)
def test_answer_is_no_refusal(subject: Subject, answer: Any, said: str) -> None:
    text = rf"^{DOING} was not refused: oracle answered with {said}\.$"
    with pytest.raises(Violation, match=text):
        refuses(subject, DOING, lambda: answer)


def test_absent_stays_absent(subject: Subject) -> None:
    def absent() -> NoReturn:
        raise Absent("no such thing")

    with pytest.raises(Absent, match="no such thing"):
        refuses(subject, DOING, absent)


def test_error_of_the_suite_is_no_refusal(subject: Subject) -> None:
    def broken() -> NoReturn:
        raise ValueError("7 and 2: a mistake of the check itself")

    with pytest.raises(ValueError, match="itself"):
        explains_refusal(subject, DOING, broken, naming=(7, 2))


@pytest.mark.parametrize(
    "text",
    ["7, 2", "7 columns.", "(7)", "width=7", "7", "-7", "d:7", "7.", "is 7.\n", "[7]", "7/2"],
)
def test_number_of_its_own_is_named(subject: Subject, text: str) -> None:
    explains_refusal(subject, DOING, raising(ValueError(text)), naming=[7])


@pytest.mark.parametrize(
    "text", ["17", "70", "7.5", "0.7", "1.7.", "x7", "7x", "_7", "7_", "seven", "", "a.7"]
)
def test_number_inside_of_another_is_not_named(subject: Subject, text: str) -> None:
    said = rf"^{DOING} is refused by oracle with an error that does not name 7: ValueError"
    with pytest.raises(Shortcoming, match=said) as caught:
        explains_refusal(subject, DOING, raising(ValueError(text)), naming=[7])
    assert isinstance(caught.value.__cause__, ValueError)


def test_every_number_has_to_be_named(subject: Subject) -> None:
    with pytest.raises(Shortcoming, match=r"does not name 2 and 9: ValueError: 7\.$"):
        explains_refusal(subject, DOING, raising(ValueError("7")), naming=(7, 2, 9))
    explains_refusal(subject, DOING, raising(ValueError("rate 1.5")), naming=[1.5])
    with pytest.raises(Shortcoming, match=r"does not name 1\.5"):
        explains_refusal(subject, DOING, raising(ValueError("rate 1x5")), naming=[1.5])


def test_reported_error_is_that_of_the_backend(subject: Subject) -> None:
    with pytest.raises(BackendError):
        raising(RuntimeError("7"))()
