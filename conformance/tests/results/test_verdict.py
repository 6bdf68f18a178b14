"""The statuses: which of them conform, fail, need words, and reject what is none."""

import pytest

from attentest.results.verdict import Status, Verdict

PREDICATES = {
    "judged": "pass deviation warning violation error timeout crash suite-bug",
    "holds": "pass deviation",
    "conforms": "pass deviation warning",
    "fails": "violation error timeout crash",
    "contradicts": "warning violation",
    "broken": "warning violation error timeout crash",
    "needs_words": "warning violation error timeout crash suite-bug",
    "fails_run": "violation error timeout crash suite-bug",
}


@pytest.mark.parametrize("name", PREDICATES)
def test_status_answers(name: str) -> None:
    assert [one.value for one in Status if getattr(one, name)] == PREDICATES[name].split()


def test_verdict_refuses_an_unknown_status() -> None:
    with pytest.raises(ValueError, match="fine"):
        Verdict("one", "attention.formula", "fine")  # type: ignore[arg-type]


def test_finding_is_the_message_without_the_place() -> None:
    message = "calling it raised TypeError: f(x) (model.py:3 in f)"
    where = "model.py:3 in f"
    assert Verdict("one", "a.b", Status.ERROR, message, where=where).finding.endswith("f(x)")
    assert Verdict("one", "a.b", Status.ERROR, message).finding == message


def test_cause_is_what_was_raised_and_the_innermost_place() -> None:
    def cause(doing: str, raised: str, *places: str) -> str:
        where = "; ".join(places)
        message = f"{doing} raised {raised} ({where})"
        return Verdict("one", "a.b", Status.ERROR, message, where=where).cause

    loading = cause("loading it", "KeyError: 'x'", "mine.py:3 in load", "map.py:9 in find")
    assert loading == "KeyError: 'x' (map.py:9 in find)"
    assert loading == cause("exporting it", "KeyError: 'x'", "map.py:9 in find")
    assert loading != cause("loading it", "KeyError: 'x'", "mine.py:3 in load")
    assert loading != cause("loading it", "KeyError: 'y'", "map.py:9 in find")
