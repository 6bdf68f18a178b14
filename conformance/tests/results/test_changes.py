"""Changes between two runs, and which of them are regressions."""

from pathlib import Path

import pytest
from report_cases import SLUGS, all_of, judged, written

from attentest.results import stream
from attentest.results.changes import changes
from attentest.results.run import BackendRun
from attentest.views.changes import lines
from attentest.views.html import Changes, Unrelated

ONE = SLUGS[:1]


def between(
    tmp_path: Path, old: list[BackendRun], new: list[BackendRun], **settings: tuple[str, ...]
) -> Changes:
    earlier = written(tmp_path / "old.jsonl", *old, slugs=settings.get("before", SLUGS))
    later = written(tmp_path / "new.jsonl", *new, slugs=settings.get("now", SLUGS))
    return changes(stream.read(earlier), stream.read(later))


@pytest.mark.parametrize(
    ("before", "now", "kind", "worse"),
    [
        ("pass", "violation", "newly failing", True),
        ("deviation", "error", "newly failing", True),
        ("warning", "timeout", "newly failing", True),
        ("pass", "suite-bug", "newly failing", True),
        ("pass", "absent", "no longer judged", True),
        ("violation", "absent", "no longer judged", False),
        ("violation", "pass", "fixed", False),
        ("crash", "warning", "fixed", False),
        ("absent", "pass", "newly judged", False),
        ("absent", "violation", "newly judged", False),
        ("pass", "warning", "changed", False),
        ("violation", "timeout", "changed", False),
    ],
)
def test_the_kind_of_a_change(
    tmp_path: Path, before: str, now: str, kind: str, worse: bool
) -> None:
    old, new = (judged("one", all_of(status, ONE)) for status in (before, now))
    (change,) = between(tmp_path, [old], [new], before=ONE, now=ONE).changes
    assert (change.kind, change.before, change.now) == (kind, before, now)
    assert change.regression is worse


def test_the_same_verdicts_are_no_change(tmp_path: Path) -> None:
    found = between(tmp_path, [judged("one", all_of("pass"))], [judged("one", all_of("pass"))])
    assert not found.changes
    assert found.unchanged == {"one": len(SLUGS)}
    assert [line.plain for line in lines(found)][-1] == "no regression"


def test_a_clause_that_is_not_asked_for_again_is_removed_and_no_regression(tmp_path: Path) -> None:
    old, new = judged("one", all_of("pass")), judged("one", all_of("pass", SLUGS[1:]))
    found = between(tmp_path, [old], [new], now=SLUGS[1:])
    assert [(one.kind, one.clause) for one in found.changes] == [("removed", SLUGS[0])]
    assert not found.regressions
    back = between(tmp_path, [new], [old], before=SLUGS[1:])
    assert [(one.kind, one.clause) for one in back.changes] == [("added", SLUGS[0])]


def test_a_backend_that_is_not_asked_again_is_removed_and_no_regression(tmp_path: Path) -> None:
    one, two = (judged(name, all_of("pass")) for name in ("one", "two"))
    found = between(tmp_path, [one, two], [one])
    assert {(change.kind, change.backend) for change in found.changes} == {("removed", "two")}
    assert not found.regressions


def test_a_backend_that_is_no_longer_loaded_is_a_regression(tmp_path: Path) -> None:
    old, new = judged("one", all_of("pass")), judged("one", {}, failure="no such module")
    found = between(tmp_path, [old], [new])
    assert {change.kind for change in found.changes} == {"lost"}
    assert len(found.regressions) == len(SLUGS)
    assert "  not loaded: no such module" in [line.plain for line in lines(found)]


def test_regressions_come_first_and_are_told_with_what_was_found(tmp_path: Path) -> None:
    old = judged("one", dict(zip(SLUGS, ("violation", "pass", "pass", "pass"), strict=True)))
    new = judged("one", dict(zip(SLUGS, ("pass", "warning", "violation", "pass"), strict=True)))
    found = between(tmp_path, [old], [new])
    assert [one.kind for one in found.changes] == ["newly failing", "fixed", "changed"]
    shown = [line.plain for line in lines(found)]
    assert f"  newly failing: {SLUGS[2]}: pass -> violation (regression)" in shown
    assert "    It differs by 0.5." in shown
    assert shown[-1] == "1 regression"
    red = [line.plain for line in lines(found) if "red" in str(line.style)]
    assert red == [f"  newly failing: {SLUGS[2]}: pass -> violation (regression)"]


def test_other_settings_are_told(tmp_path: Path) -> None:
    one = judged("one", all_of("pass"))
    old = stream.read(written(tmp_path / "old.jsonl", one))
    new = stream.read(written(tmp_path / "new.jsonl", one, seed=7))
    assert changes(old, new).settings == (("seed", "0", "7"),)


def test_runs_without_a_common_backend_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unrelated, match="no backend in common"):
        between(tmp_path, [judged("one", all_of("pass"))], [judged("two", all_of("pass"))])


def test_it_is_a_table_and_plain_values(tmp_path: Path) -> None:
    old, new = (judged("<b>", all_of(status, ONE)) for status in ("pass", "violation"))
    found = between(tmp_path, [old], [new], before=ONE, now=ONE)
    assert found.rows()[0]["kind"] == "newly failing"
    assert found.as_dict()["regressions"] == 1
    assert "&lt;b&gt;" in found._repr_html_()
