"""`attentest report`, and the page that `run` and `check` write."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from folders import SUPPORT
from report_cases import SLUGS, all_of, comparison, judged, result, written

from attentest.interfaces.cli.main import main
from attentest.views.html.page import BEGINNING

MINIATURES = SUPPORT / "miniatures.py"
ONE = ("--clause", "attention.one-key")


def command(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return written(tmp_path / "good.jsonl", judged("one", all_of("pass")))


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return written(tmp_path / "bad.jsonl", judged("one", all_of("pass") | {SLUGS[1]: "violation"}))


def test_a_page_is_written_and_replaced_and_nothing_else_is(good: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    for _ in range(2):
        done = command("report", good, "--html", page)
        assert (done.exit_code, done.output) == (0, "")
    assert page.read_text().startswith(BEGINNING)
    thesis = tmp_path / "thesis.html"
    thesis.write_text("<!doctype html><title>three years of work</title>")
    done = command("report", good, "--html", thesis)
    assert done.exit_code == 2
    assert "left as it is" in done.output
    assert "three years" in thesis.read_text()


def test_a_regression_exits_with_1_and_a_fix_with_0(good: Path, bad: Path) -> None:
    done = command("report", good, bad)
    assert done.exit_code == 1
    assert f"newly failing: {SLUGS[1]}: pass -> violation (regression)" in done.output
    assert "one: 1 changed, 3 unchanged" in done.output
    done = command("report", bad, good)
    assert done.exit_code == 0
    assert f"fixed: {SLUGS[1]}: violation -> pass" in done.output
    assert "no regression" in done.output


def test_changes_are_written_as_a_result_and_as_a_section(
    good: Path, bad: Path, tmp_path: Path
) -> None:
    out, page = tmp_path / "changes.json", tmp_path / "report.html"
    assert command("report", good, bad, "--json", out, "--html", page).exit_code == 1
    found = json.loads(out.read_text())
    assert (found["type"], found["regressions"]) == ("changes", 1)
    assert found["changes"][0]["clause"] == SLUGS[1]
    assert 'id="changes"' in page.read_text()


def test_two_runs_side_by_side_are_not_compared(good: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "other.jsonl", judged("two", all_of("violation")))
    done = command("report", good, other)
    assert done.exit_code == 2
    assert "no backend in common" in done.output
    assert "--side-by-side" in done.output
    page = tmp_path / "report.html"
    done = command("report", good, other, "--side-by-side", "--html", page)
    assert (done.exit_code, done.output) == (0, "")
    assert "2 backends judged" in page.read_text()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "Missing argument"),
        (("GOOD",), "--html FILE"),
        (("GOOD", "--html", "OUT", "--json", "OUT"), "nothing for --json"),
        (("none.jsonl", "--html", "OUT"), "cannot be read"),
        (("CUT", "--html", "OUT"), "it has no footer, so it was cut off. Make it again."),
        (
            ("ODD", "--html", "OUT"),
            "is no comparison or cost or learning or sweep or index that attentest wrote",
        ),
    ],
)
def test_invalid_request_is_reported(
    good: Path, tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(good.read_text().splitlines(keepends=True)[:-1]))
    odd = result(tmp_path / "odd.json", "run", {})
    places = {"GOOD": good, "OUT": tmp_path / "out", "CUT": cut, "ODD": odd}
    done = command("report", *(places.get(word, word) for word in words))
    assert done.exit_code == 2
    assert reason in " ".join(done.output.split())
    assert not (tmp_path / "out").exists()


def test_expected_failures_are_marked(bad: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    entry = f'clause = "{SLUGS[1]}"\nowner = "Ada"\nreason = "it waits"\nlink = "#7"\n'
    known.write_text(f'[[deviation]]\n{entry}message = "differs by 0.5"\n')
    page = tmp_path / "report.html"
    assert command("report", bad, "--html", page, "--deviations", known).exit_code == 0
    assert "1 expected to fail" in page.read_text()
    known.write_text(f"[[deviation]]\n{entry}")
    done = command("report", bad, "--html", page, "--deviations", known)
    assert done.exit_code == 2
    assert "lacks message" in done.output


def test_a_page_that_cannot_be_made_takes_nothing_away(good: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    command("report", good, "--html", page)
    before = page.read_text()
    lacking = result(tmp_path / "c.json", "comparison", {"backends": []})
    done = command("report", good, lacking, "--html", page)
    assert done.exit_code == 2
    assert "c.json cannot be shown" in done.output
    assert page.read_text() == before


def test_a_comparison_alone_is_a_page(tmp_path: Path) -> None:
    path = result(tmp_path / "c.json", "comparison", comparison())
    assert command("report", path, "--html", tmp_path / "report.html").exit_code == 0


@pytest.mark.parametrize("library", ["jinja2", "jsonschema"])
def test_a_missing_extra_is_told_before_anything_is_done(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    page = tmp_path / "report.html"
    done = command("run", f"{MINIATURES}:good", *ONE, "--html", page)
    assert done.exit_code == 2
    assert 'pip install "attentest[report]"' in done.output
    assert not page.exists()


@pytest.mark.parametrize("verb", ["run", "check"])
def test_judging_writes_the_page(verb: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = command(verb, f"{MINIATURES}:good", *ONE, "--html", page)
    assert done.exit_code == 0, done.output
    assert "1 of 1 judged clauses conform, of 1 in all" in " ".join(
        page.read_text().replace("<strong>", "").replace("</strong>", "").split()
    )


def test_two_options_may_not_name_one_file(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for words in (("report", good, good), ("run", f"{MINIATURES}:good", *ONE)):
        done = command(*words, "--html", out, "--json", tmp_path / "." / "out")
        assert done.exit_code == 2
        assert "both name" in done.output
    assert not out.exists()
