"""The matrix on a terminal: what has a row, what follows from what, and that nothing is cut."""

import io
import re
from collections.abc import Mapping

import pytest
from rich.console import Console

from attentest.results.causes import causes
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Description, Run
from attentest.results.verdict import LikelyCause, Location, Verdict
from attentest.views.annotations import annotations
from attentest.views.coloured import coloured
from attentest.views.matrix import Choices, Matrix, show
from attentest_spec.clauses import clauses

SCALE = LikelyCause(
    "fault", ("attention.scale-missing",), "the fault attention.scale-missing: No scale.", 0.0
)
HEADS = "multi_head_attention"
BROKEN = (f"{HEADS}.formula", f"{HEADS}.projection-bias", f"{HEADS}.mask-per-head")


def judged(name: str, failing: tuple[str, ...] = (), **choices: str) -> BackendRun:
    """Return a backend that passes every clause but the `failing` ones, of one likely cause."""
    verdicts = [
        Verdict(name, slug, "violation", "It differs.", diagnosis=(SCALE,))
        if slug in failing
        else Verdict(name, slug, "pass")
        for slug in clauses()
    ]
    return BackendRun(name, Description(components=(HEADS,), choices=choices), verdicts)


def run(*backends: BackendRun) -> Run:
    """Return the run of `backends` by every clause."""
    return Run.of(Plan(tuple(clauses())), backends)


def printed(run: Run, width: int = 80, *, every: bool = False) -> list[str]:
    """Return the lines of the matrix."""
    console = Console(file=io.StringIO(), width=width)
    Matrix(run, every).show(console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.rstrip() for line in text.splitlines()]


def row(lines: list[str], name: str) -> list[str]:
    """Return the cells of the row called `name`."""
    (cells,) = (line.split()[1:] for line in lines if line.split()[:1] == [name])
    return cells


def test_default_matrix_has_chapters_with_counts_and_rows_that_need_attention() -> None:
    lines = printed(run(judged("good"), judged("bad", BROKEN)))
    total = len(clauses())
    heads = sum(slug.startswith(f"{HEADS}.") for slug in clauses())
    assert row(lines, HEADS) == [f"{heads}/{heads}", f"{heads - 3}/{heads}"]
    assert row(lines, "formula") == ["pass", "VIOLATES"]
    assert row(lines, "conforms") == [f"{total}/{total}", f"{total - 3}/{total}"]
    assert "  (2 more)" in "\n".join(lines)
    assert sum(line.startswith("  ") for line in lines) == 2


def test_whole_matrix_has_a_row_for_every_clause_and_marks_consequences() -> None:
    lines = printed(run(judged("bad", BROKEN)), every=True)
    assert sum(line.startswith("  ") for line in lines) == len(clauses())
    assert row(lines, "projection-bias") == ["follows"]


@pytest.mark.parametrize("number", [4, 12])
def test_no_number_or_word_is_cut_at_80_columns(number: int) -> None:
    names = [f"backend_number_{place}" for place in range(number)]
    lines = printed(run(*(judged(name, BROKEN) for name in names)))
    assert max(map(len, lines)) <= 80
    total = len(clauses())
    text = "\n".join(lines)
    assert len(re.findall(rf"\b{total - 3}/{total}\b", text)) == number
    assert all(re.search(rf"\b{name}\b", text) for name in names)
    assert "…" not in text


def choices(run: Run, *, every: bool = False) -> Mapping[str, list[str]]:
    """Return the cells of the table of choices."""
    return {one.name: [cell.plain for cell in one.cells] for one in Choices(run, every).rows()}


def test_choice_is_not_determined_while_the_formula_fails() -> None:
    table = choices(run(judged("bad", BROKEN, projection_bias="present")))
    assert table["projection_bias"] == ["none", "present (not determined)"]


def test_choice_whose_clause_fails_by_itself_is_contradicted() -> None:
    alone = judged("bad", (f"{HEADS}.projection-bias",), projection_bias="present")
    assert choices(run(alone))["projection_bias"][1] == "present (not shown by the numbers)"


def test_choices_as_the_paper_are_shown_with_all_alone() -> None:
    good = run(judged("good"))
    assert "activation" not in choices(good)
    assert "activation" in choices(good, every=True)


def test_screen_is_the_same_text_with_colours_and_without() -> None:
    plain = Console(file=io.StringIO(), width=80)
    colour = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    for console in (plain, colour):
        show(console, run(judged("bad", BROKEN)).limited([HEADS]))
    text, escaped = plain.file.getvalue(), colour.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[" in escaped
    assert re.sub(r"\x1b\[[\d;]*m", "", escaped) == text
    assert len(text.splitlines()) <= 40
    assert str(coloured("a\nb")) == "a\nb"


def test_annotation_is_at_the_line_and_escaped() -> None:
    line = Location("my,file.py", 14, "s = q @ k", "scores", "q k / 2", "100% of\nq k")
    verdicts = [
        Verdict("my.py:attend", slug, "violation", "It differs.", location=line)
        for slug in ("attention.formula", "attention.one-key")
    ]
    warning = Verdict("my.py:attend", "attention.half-precision", "warning", "Coarse.")
    first, second = annotations(causes([*verdicts, warning]))
    assert first == (
        "::error file=my%2Cfile.py,line=14,title=attentest%3A attention.formula::"
        "100%25 of%0Aq k; expected q k / 2 (attend breaks attention.formula and 1 more)"
    )
    assert second.startswith(
        "::warning title=attentest%3A attention.half-precision::Coarse (attend"
    )
