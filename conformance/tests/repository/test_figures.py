"""The generated parts of README.md: the matrix, the badges, and their markers."""

import re
import sys

import pytest
from folders import REPOSITORY


def test_matrix_is_shortened_with_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(REPOSITORY / "docs"), *sys.path])
    import figures  # type: ignore[import-not-found]  # a module of docs

    rows = [f"  a{number}  pass" for number in range(12)]
    matrix = [
        "clause  one",
        "masks  1/1",
        "  m  pass",
        "attention  12/12",
        *rows,
        "conforms  13/13",
    ]
    short = figures.shorten("\n".join([*matrix, "", ""])).splitlines()
    assert short[:3] == ["clause  one", "  .. 1 more", "attention  12/12"]
    assert short[-2:] == ["  .. 4 more", "conforms  13/13"]


def test_readme_has_the_matrix_and_the_closing_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(REPOSITORY / "docs"), *sys.path])
    import figures

    lines = ["clause  one", "conforms  13/13", "", "choice  paper", "", "one: 13 of 13", ""]
    assert figures.essence("\n".join(lines)).splitlines() == [*lines[:3], "one: 13 of 13"]


def test_text_is_written_between_markers_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(REPOSITORY / "docs"), *sys.path])
    from markers import fill  # type: ignore[import-not-found]  # a module of docs

    text = "before\n<!-- a:begin -->\nold\n<!-- a:end -->\nafter\n"
    new = "before\n<!-- a:begin -->\nnew\n<!-- a:end -->\nafter\n"
    assert fill(text, "a", "new") == fill(new, "a", "new") == new
    for without in ("no markers", "<!-- a:begin -->", "<!-- a:end --> <!-- a:begin -->"):
        with pytest.raises(ValueError, match="are missing"):
            fill(without, "a", "new")


def test_badges_show_the_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(REPOSITORY / "docs"), *sys.path])
    import badges  # type: ignore[import-not-found]  # a module of docs

    from attentest.faults import faults
    from attentest.faults.unusual import UNUSUAL

    slugs = list(faults())
    score = {
        "seeds": [1, 2],
        "killed": slugs,
        "survived": [],
        "spurious": [],
        "idle clauses": [],
        "zoo": list(UNUSUAL),
        "false alarms": [],
    }
    shown = badges.badges(score)
    assert shown["detected"][1:] == (f"{len(slugs)} of {len(slugs)} over 2 seeds", True)
    assert shown["alarms"][1:] == (
        f"0 on {len(UNUSUAL)} unusual but correct implementations over 2 seeds",
        True,
    )
    score |= {"killed": slugs[1:], "survived": slugs[:1], "false alarms": [["a", "b", "error"]]}
    assert not any(good for _, _, good in badges.badges(score).values())
    with pytest.raises(ValueError, match="without a selection"):
        badges.badges(score | {"survived": []})


def test_readme_shows_the_badges_of_this_catalogue() -> None:
    from attentest.faults import faults

    shown = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    count = len(faults())
    assert re.search(rf"injected faults detected: {count} of {count} over \d+ seeds", shown)
    for name in ("detected", "alarms"):
        assert f"{name}.svg)" in shown
        assert (REPOSITORY / "docs" / "_static" / "badges" / f"{name}.svg").is_file()
