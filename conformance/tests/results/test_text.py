"""Texts and values of others, made safe to show."""

import json
import math

import pytest

from attentest.results.text import last_frames, line, plain, plain_value, summary
from attentest_spec.names import require


@pytest.mark.parametrize("text", ["", "as it is", "naïve Σ", "two\nlines", "[bold]no markup[/]"])
def test_safe_text_is_unchanged(text):
    assert plain(text) == text


@pytest.mark.parametrize("text", ["\x1b[2J", "\x00", "\u202eback", "\ud800", "\r", "\x9b31m"])
def test_control_characters_are_spelled_out(text):
    shown = plain(text)
    assert shown.isprintable()
    assert "\\" in shown
    shown.encode("utf-8")


def test_a_long_text_is_cut_and_says_so():
    assert plain("x" * 100, 10) == "x" * 7 + "..."
    assert plain("x" * 10, 10) == "x" * 10
    assert len(plain("\x00" * 100, 10)) == 10


def test_a_line_has_no_breaks():
    assert line("  one\n two\t three ") == "one two three"


def test_a_long_message_keeps_its_beginning_and_its_end():
    text = summary(ValueError(f"the program /{'x' * 500}: its answer is malformed"))
    assert text.startswith("ValueError: the program /xxx")
    assert text.endswith("xxx: its answer is malformed")
    assert len(text) == 300
    assert summary(ValueError("short")) == "ValueError: short"
    assert summary(ValueError()) == "ValueError"


def test_values_become_what_json_can_hold():
    class Odd:
        def __str__(self) -> str:
            return "odd\x1b"

    value = {"a": (1, 2.5, math.inf, math.nan), 3: {True, None}, "odd": Odd(), "\x07": "x\x07"}
    shown = json.loads(json.dumps(plain_value(value), allow_nan=False))
    assert shown["a"] == [1, 2.5, "inf", "nan"]
    assert set(shown["3"]) == {True, None}
    assert shown["odd"] == "odd\\x1b"
    assert shown["\\x07"] == "x\\x07"


def test_error_of_a_check_inside_of_code_is_shown_at_that_code():
    def code():
        require("component", "none", ("attention",))

    try:
        code()
    except Exception as failure:
        places = last_frames(failure).split("; ")
    assert places[-1].endswith(" in code")
    assert "test_text.py" in places[-1]
