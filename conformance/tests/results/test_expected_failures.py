"""Expected failures: the file is read, refused, applied and drafted."""

import tomllib
from dataclasses import replace

import pytest
from click.testing import CliRunner
from folders import SUPPORT

from attentest.interfaces.cli.main import main
from attentest.results import expected_failures
from attentest.results.expected_failures import UnusableFile
from attentest.results.verdict import Verdict

BACKENDS = ("mine.py", "other")
WHERE = "model.py:3 in attend"
ENTRY = {
    "clause": "attention.formula",
    "owner": "Ada",
    "reason": "the port is not finished",
    "link": "https://example.org/issues/7",
    "message": "The output differs by 0.405",
}
FOUND = Verdict(
    "mine.py", "attention.formula", "violation", "The output differs by 0.405 at (2, 0)."
)


def written(folder, *entries, table="expected_failure"):
    file = folder / "deviations.toml"
    lines = [
        line
        for entry in entries
        for line in (f"[[{table}]]", *(f'{name} = "{value}"' for name, value in entry.items()))
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def refusal(folder, *entries):
    with pytest.raises(UnusableFile) as refused:
        expected_failures.read(written(folder, *entries), BACKENDS)
    return str(refused.value)


def test_an_entry_is_read_and_found(tmp_path):
    entries = expected_failures.read(written(tmp_path, ENTRY), BACKENDS)
    found = expected_failures.find(entries, FOUND)
    assert found is not None
    assert found.problem(FOUND) == ""
    assert expected_failures.find(entries, replace(FOUND, clause="attention.shapes")) is None


def test_a_file_with_deviation_tables_is_read(tmp_path):
    entries = expected_failures.read(written(tmp_path, ENTRY, table="deviation"), BACKENDS)
    assert [one.clause for one in entries] == [ENTRY["clause"]]


def test_an_entry_for_one_backend_says_nothing_of_another(tmp_path):
    entries = expected_failures.read(written(tmp_path, {**ENTRY, "backend": "other"}), BACKENDS)
    assert expected_failures.find(entries, FOUND) is None
    assert expected_failures.find(entries, replace(FOUND, backend="other"))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"clause": "attention.formulas"}, "did you mean attention.formula"),
        ({"clause": "attention.*"}, "over-broad"),
        ({"clause": "*"}, "over-broad"),
        ({"clause": "attention"}, "over-broad"),
        ({"clause": "encoder_layer"}, "over-broad"),
        ({"backend": "mine"}, "did you mean mine.py"),
        ({"backend": "*"}, "over-broad"),
        ({"message": "differs"}, "over-broad"),
        ({"message": ""}, "message is empty"),
        ({"owner": "TODO"}, "owner is still TODO"),
        ({"link": "todo: open an issue"}, "link is still TODO"),
        ({"resaon": "a slip"}, "did you mean reason"),
    ],
)
def test_mistyped_or_broad_entry_is_refused(tmp_path, changes, problem):
    assert problem in refusal(tmp_path, {**ENTRY, **changes})


@pytest.mark.parametrize("name", ["clause", "owner", "reason", "link", "message"])
def test_a_missing_field_is_refused(tmp_path, name):
    entry = {key: value for key, value in ENTRY.items() if key != name}
    assert f"lacks {name}" in refusal(tmp_path, entry)


def test_a_value_that_is_no_text_is_refused(tmp_path):
    file = written(tmp_path, ENTRY)
    file.write_text(file.read_text().replace('"Ada"', "7"))
    with pytest.raises(UnusableFile, match="owner is no text"):
        expected_failures.read(file, BACKENDS)


@pytest.mark.parametrize("twin", [ENTRY, {**ENTRY, "backend": "other"}])
def test_a_duplicate_is_refused(tmp_path, twin):
    assert "declared twice" in refusal(tmp_path, ENTRY, twin)


def test_every_mistake_is_told_at_once(tmp_path):
    problem = refusal(tmp_path, {**ENTRY, "owner": "TODO"}, {**ENTRY, "clause": "*"})
    assert len(problem.splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[deviations]]\nclause = 'attention.formula'", "[[expected_failure]]"),
        ("[deviation]\nclause = 'attention.formula'", "[[expected_failure]]"),
        ("[[deviation]", "is no TOML"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, text, problem):
    file = tmp_path / "deviations.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnusableFile) as refused:
        expected_failures.read(file, BACKENDS)
    assert problem in str(refused.value)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(UnusableFile, match="cannot be read"):
        expected_failures.read(tmp_path / "nosuch.toml", BACKENDS)


@pytest.mark.parametrize(
    ("status", "message", "problem"),
    [
        ("pass", "", "passes now"),
        ("deviation", "", "passes now"),
        ("absent", "provides no attention", "is stale"),
        ("violation", "The output differs by 0.406 at (2, 0).", "another finding"),
        ("error", "calling attention raised RuntimeError", "another finding"),
    ],
)
def test_an_entry_that_the_verdict_does_not_bear_out_is_refuted(tmp_path, status, message, problem):
    (entry,) = expected_failures.read(written(tmp_path, ENTRY), BACKENDS)
    assert problem in entry.problem(replace(FOUND, status=status, message=message))


def test_line_breaks_in_a_message_do_not_matter(tmp_path):
    (entry,) = expected_failures.read(written(tmp_path, ENTRY), BACKENDS)
    assert entry.problem(replace(FOUND, message="The output\n  differs by 0.405 at (2, 0)")) == ""


def test_a_draft_holds_what_fails_and_must_be_filled_in(tmp_path):
    odd = 'raised "TypeError": a \\ and\na line break (of two) (model.py:3 in attend)'
    verdicts = [
        FOUND,
        replace(FOUND, clause="attention.shapes", status="pass"),
        replace(FOUND, clause="attention.one-key", status="error", message=odd, where=WHERE),
    ]
    file = tmp_path / "deviations.toml"
    file.write_text(expected_failures.draft(verdicts), encoding="utf-8")
    drafted = tomllib.loads(file.read_text(encoding="utf-8"))["expected_failure"]
    assert [one["clause"] for one in drafted] == ["attention.formula", "attention.one-key"]
    assert drafted[1]["message"] == 'raised "TypeError": a \\ and a line break (of two)'
    with pytest.raises(UnusableFile, match="owner is still TODO"):
        expected_failures.read(file, BACKENDS)
    file.write_text(file.read_text(encoding="utf-8").replace("TODO", "Ada"), encoding="utf-8")
    entries = expected_failures.read(file, BACKENDS)
    for verdict in (verdicts[0], verdicts[2]):
        found = expected_failures.find(entries, verdict)
        assert found is not None
        assert found.problem(verdict) == ""


# In the shell -------------------------------------------------------------------------------------


WRONG = f"{SUPPORT / 'miniatures.py'}:wrong"


def shell(tmp_path, slug, **changes):
    """Run the command on one clause of a wrong backend, with a file of one entry."""
    file = written(tmp_path, {**ENTRY, "message": "The output differs by", **changes})
    words = ["run", WRONG, "--clause", slug, "--no-shrink", "--deviations", str(file)]
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize(
    ("slug", "changes", "code", "problem"),
    [
        ("attention.formula", {}, 0, "0 of 1 judged clauses conform"),
        ("attention.formula", {"message": "The weights differ"}, 1, "there is another finding"),
        ("attention.one-key", {"clause": "attention.one-key"}, 1, "it passes now"),
        ("attention.value-width", {}, 1, "0 of 1 judged clauses conform"),
        ("attention.formula", {"clause": "attention"}, 2, "over-broad"),
    ],
)
def test_the_shell_holds_a_run_to_the_file(tmp_path, slug, changes, code, problem):
    result = shell(tmp_path, slug, **changes)
    assert result.exit_code == code, result.output
    assert problem in " ".join(result.output.split())
