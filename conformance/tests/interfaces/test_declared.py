"""Expected failures under pytest: they let a run pass, and fail it once they are gone."""

import tomllib

import pytest
from projects import BLIND, CLAUSES, RAISING, SOUND, project, ran

pytest_plugins = ["pytester"]
TABLE = "[[expected_failure]]"
LINE = 'attentest_deviations = "deviations.toml"'
DIAGONAL = {
    "clause": "masks.causal-keeps-diagonal",
    "owner": "Ada",
    "reason": "the next release",
    "link": "https://example.org/issues/7",
    "message": "The mask hides",
}
ORDER = {**DIAGONAL, "clause": "masks.causal-any-order", "message": "The mask of length"}


def declared(pytester, mask, *entries):
    """Write a project with that causal mask and those expected failures."""
    project(pytester, mask, LINE)
    lines = [
        line
        for entry in entries
        for line in (
            "[[expected_failure]]",
            *(f'{name} = "{value}"' for name, value in entry.items()),
        )
    ]
    pytester.makefile(".toml", deviations="\n".join(lines))


def test_expected_failures_pass_and_are_counted(pytester):
    declared(pytester, BLIND, DIAGONAL, ORDER)
    result = ran(pytester, "-rx")
    assert result.ret == 0
    result.assert_outcomes(passed=1 + CLAUSES - 2, xfailed=2)
    result.stdout.fnmatch_lines(
        [
            f"*{CLAUSES - 2} of {CLAUSES} judged clauses conform*2 declared in deviations.toml",
            "XFAIL attentest::masks.causal-keeps-diagonal*known: the next release (Ada, https*",
        ]
    )


def test_undeclared_failure_fails(pytester):
    declared(pytester, BLIND, DIAGONAL)
    ran(pytester).assert_outcomes(passed=1 + CLAUSES - 2, xfailed=1, failed=1)


def test_a_suite_that_is_named_by_its_path_knows_the_file_too(pytester):
    declared(pytester, BLIND, DIAGONAL)
    words = ("--pyargs", "attentest.suite.test_masks", "-k", "causal_keeps_diagonal")
    ran(pytester, *words).assert_outcomes(xfailed=1)


def test_an_entry_for_what_passes_now_fails(pytester):
    declared(pytester, SOUND, DIAGONAL)
    result = ran(pytester)
    result.assert_outcomes(passed=1 + CLAUSES - 1, failed=1)
    result.stdout.fnmatch_lines(["*masks.causal-keeps-diagonal, and it passes now*Remove*"])


def test_an_entry_for_what_is_no_longer_judged_is_stale(pytester):
    declared(pytester, SOUND, DIAGONAL)
    file = pytester.path / "my_model.py"
    file.write_text(file.read_text().replace('("causal_mask",)', '("layer_norm",)'))
    result = ran(pytester, "-k", "diagonal")
    result.assert_outcomes(failed=1, deselected=CLAUSES)
    result.stdout.fnmatch_lines(["*the entry is stale: tiny provides no causal_mask*"])


def test_another_finding_than_the_declared_one_fails(pytester):
    declared(pytester, RAISING, DIAGONAL, ORDER)
    result = ran(pytester, "-k", "diagonal")
    result.assert_outcomes(failed=1, deselected=CLAUSES)
    result.stdout.fnmatch_lines(["*there is another finding (error): *ZeroDivisionError*"])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"clause": "masks.causal-keeps-diagonals"}, "did you mean masks.causal-keeps-diagonal"),
        ({"clause": "masks"}, "over-broad"),
        ({"clause": "attention.formula"}, "not among those that are judged here"),
        ({"backend": "your_model.py:backend"}, "did you mean my_model.py:backend"),
    ],
)
def test_a_file_that_cannot_be_used_stops_the_run(pytester, changes, told):
    declared(pytester, BLIND, {**DIAGONAL, **changes})
    result = ran(pytester)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*deviations.toml, entry 1: *{told}*"])


# Drafting -----------------------------------------------------------------------------------------


@pytest.mark.proof
def test_a_full_run_drafts_the_file_and_it_must_be_filled_in(pytester):
    project(pytester, BLIND, LINE)
    file = pytester.path / "deviations.toml"
    ran(pytester, "--write-deviations").stdout.fnmatch_lines(
        ["deviations.toml was written with 2 entries. Fill in *"]
    )
    drafted = tomllib.loads(file.read_text())["expected_failure"]
    assert [one["clause"] for one in drafted] == [DIAGONAL["clause"], ORDER["clause"]]
    assert {one["backend"] for one in drafted} == {"my_model.py:backend"}
    unfilled = ran(pytester)
    assert unfilled.ret == 4
    unfilled.stderr.fnmatch_lines(["*entry 1: owner is still TODO*"])
    file.write_text(file.read_text().replace("TODO", "Ada"))
    assert ran(pytester).ret == 0


@pytest.mark.parametrize(
    "words", [("-k", "diagonal"), ("-x",), ("-m", "not clause"), ("test_own.py",)]
)
def test_a_partial_run_drafts_nothing(pytester, words):
    project(pytester, BLIND, LINE)
    result = ran(pytester, "--write-deviations", *words)
    assert result.ret == 4
    result.stdout.fnmatch_lines(["No expected failures were drafted: this was a partial run*"])
    assert not (pytester.path / "deviations.toml").exists()


def test_a_run_of_the_last_failures_is_partial(pytester):
    project(pytester, BLIND, LINE)
    pytester.runpytest_inprocess("-o", "attentest_deviations=")
    result = pytester.runpytest_inprocess("--lf", "--write-deviations")
    assert result.ret == 4
    assert not (pytester.path / "deviations.toml").exists()


def test_a_file_that_is_there_is_left_as_it_is(pytester):
    declared(pytester, BLIND, DIAGONAL)
    file = pytester.path / "deviations.toml"
    before = file.read_text()
    result = ran(pytester, "--write-deviations")
    result.stdout.fnmatch_lines(
        ["deviations.toml exists and was left as it is*", f'clause = "{ORDER["clause"]}"']
    )
    result.stdout.no_fnmatch_line(f'clause = "{DIAGONAL["clause"]}"')
    assert file.read_text() == before


def test_nothing_to_declare_writes_no_file(pytester):
    project(pytester, SOUND, LINE)
    result = ran(pytester, "--write-deviations")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["Nothing is left to declare*"])
    assert not (pytester.path / "deviations.toml").exists()


def test_drafting_needs_a_name_for_the_file(pytester):
    project(pytester, SOUND)
    result = ran(pytester, "--write-deviations")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*Add the line: attentest_deviations = *"])


@pytest.mark.proof
def test_a_run_over_processes_judges_and_drafts_the_same(pytester):
    project(pytester, BLIND, LINE)
    words = ("-n", "2", "-p", "no:cacheprovider", "--write-deviations")
    result = pytester.runpytest_subprocess(*words)
    result.assert_outcomes(passed=1 + CLAUSES - 2, failed=2)
    result.stdout.fnmatch_lines([f"*: {CLAUSES - 2} of {CLAUSES} judged clauses conform*"])
    result.stdout.fnmatch_lines(["*was written with 2 entries*"])
