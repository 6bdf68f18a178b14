"""The pytest plugin, in a project of a user's own."""

from xml.etree import ElementTree

import pytest
from folders import SUPPORT
from projects import BLIND, CLAUSES, project, ran

from attentest.interfaces.pytest import plugin
from attentest.interfaces.pytest.items import bench_of
from attentest_spec import registry
from attentest_spec.clauses import clauses

MINIATURES = SUPPORT / "miniatures.py"
pytest_plugins = ["pytester"]
PICKED = ("-k", "test_one_key or test_formula", "attentest.suite.test_attention", "-q")


@pytest.mark.proof
def test_a_clause_is_a_test_with_a_readable_id(pytester):
    pytester.makeini("[pytest]")
    result = pytester.runpytest_subprocess(
        "--pyargs", *PICKED, "--backend", f"{MINIATURES}:good", "-vv"
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_one_key*miniatures.py:good* PASSED*"])


def test_a_violation_fails_with_the_story_and_no_traceback(pytester):
    pytester.makeini("[pytest]")
    words = ("--backend", f"{MINIATURES}:wrong", "--attentest-reproduce", "out")
    result = ran(pytester, "--pyargs", *PICKED, *words)
    result.assert_outcomes(passed=1, failed=1)
    (file,) = (pytester.path / "out").iterdir()
    result.stdout.fnmatch_lines([f"*reproduction: *{file.name}"])
    result.stdout.fnmatch_lines(["likely cause: *", "*breaks attention.formula: *", "*computed *"])
    result.stdout.no_fnmatch_line("*judge.py*")


def test_one_line_in_the_ini_file_is_enough(pytester):
    pytester.makeini(f"[pytest]\nattentest_backend = {MINIATURES}:good")
    ran(pytester, "--pyargs", *PICKED).assert_outcomes(passed=2)


def test_an_unknown_backend_is_one_line(pytester):
    pytester.makeini("[pytest]")
    result = ran(pytester, "--pyargs", *PICKED, "--backend", "nosuch")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*There is no backend named 'nosuch'*"])


def test_effort_is_that_of_the_option(pytester):
    target = f"{MINIATURES}:good"
    assert bench_of(pytester.parseconfig(), target).effort == 1.0
    assert bench_of(pytester.parseconfig("--attentest-effort", "0.2"), target).effort == 0.2


@pytest.mark.parametrize("factor", ["0", "-1", "nan", "inf", "much"])
def test_effort_that_is_no_positive_number_is_a_usage_error(pytester, capsys, factor):
    with pytest.raises(pytest.UsageError, match="is not a number above zero"):
        pytester.parseconfig(f"--attentest-effort={factor}")


def test_missing_component_is_skipped_with_the_reason(pytester):
    pytester.makeini("[pytest]")
    result = ran(
        pytester,
        "--pyargs",
        "attentest.suite.test_attention",
        "-k",
        "test_gradient_finite",
        "-rs",
        "--backend",
        f"{MINIATURES}:good",
    )
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*offers no gradient*"])


@pytest.mark.proof
def test_the_plugin_imports_no_torch(pytester):
    pytester.makepyfile(
        "import sys\ndef test_nothing():\n"
        "    assert 'torch' not in sys.modules and 'hypothesis' not in sys.modules"
    )
    pytester.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_strict_judges_undeclared_choices_by_the_paper(pytester):
    pytester.makeini("[pytest]")
    target = f"{SUPPORT}/wild/parts.py:TokenEmbedding"  # its scale is not the paper's
    words = ("--backend", target, "--attentest-strict")
    ran(pytester, "attentest::embedding.scale", *words).assert_outcomes(failed=1)


# One line in the settings of a project ------------------------------------------------------------


def test_one_line_adds_the_clauses_to_ones_own_tests(pytester):
    project(pytester)
    result = ran(pytester, "-v")
    result.assert_outcomes(passed=1 + CLAUSES)
    result.stdout.fnmatch_lines(
        [
            "test_own.py::test_own PASSED*",
            "attentest::masks.causal-keeps-past[[]my_model.py:backend] PASSED*",
            f"my_model.py:backend: {CLAUSES} of {CLAUSES} judged clauses conform*({CLAUSES} pass)*",
        ]
    )


def test_without_the_line_nothing_is_added(pytester):
    pytester.makepyfile("def test_own():\n    pass\n")
    result = ran(pytester)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*attentest*conform*")


def test_a_path_on_the_command_line_runs_that_path_alone(pytester):
    project(pytester)
    ran(pytester, "test_own.py").assert_outcomes(passed=1)
    suite = ran(pytester, "--pyargs", "attentest.suite.test_masks", "-k", "causal_keeps")
    suite.assert_outcomes(passed=2)
    whole = ran(pytester, "--pyargs", "attentest.suite.test_masks")
    whole.stdout.fnmatch_lines([f"*judged clauses conform, of {len(clauses())} in all*"])


def test_a_readable_id_can_be_asked_for(pytester):
    project(pytester)
    one = "attentest::masks.causal-keeps-past"
    ran(pytester, one).assert_outcomes(passed=1)
    ran(pytester, f"{one}[my_model.py:backend]", "test_own.py").assert_outcomes(passed=2)
    result = ran(pytester, "attentest::masks.nosuch")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*no clause attentest::masks.nosuch*"])


def test_asking_for_a_clause_with_nothing_to_judge_is_a_usage_error(pytester):
    result = ran(pytester, "attentest::masks.causal-keeps-past")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*nothing to judge*attentest_backend*"])


@pytest.mark.parametrize(
    ("words", "passed"),
    [(("-k", "causal-keeps"), 2), (("-m", "clause"), CLAUSES), (("-k", "own"), 1)],
)
def test_expressions_choose_among_clauses(pytester, words, passed):
    project(pytester)
    ran(pytester, *words).assert_outcomes(passed=passed, deselected=1 + CLAUSES - passed)


def test_clauses_are_listed_and_written_to_junit(pytester):
    project(pytester)
    result = ran(pytester, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["attentest::masks.causal-shape[[]my_model.py:backend]"])
    ran(pytester, "--junitxml", "junit.xml")
    cases = ElementTree.parse(pytester.path / "junit.xml").iter("testcase")
    named = [case for case in cases if case.get("classname") == "attentest"]
    assert len(named) == CLAUSES
    assert {one.get("name") for one in named[0].iter("property")} >= {"clause", "status"}


def test_a_file_is_looked_for_beside_the_settings(pytester, monkeypatch):
    project(pytester)
    monkeypatch.chdir(pytester.mkdir("inner"))
    ran(pytester, "-k", "causal-keeps").assert_outcomes(passed=2, deselected=CLAUSES - 2)


def test_a_violation_of_a_clause_is_told_without_a_traceback(pytester):
    project(pytester, BLIND)
    result = ran(pytester)
    result.stdout.fnmatch_lines(
        [
            "*_ masks.causal-keeps-diagonal on my_model.py:backend _*",
            "   breaks masks.causal-keeps-diagonal: *",
            "FAILED attentest::masks.causal-keeps-diagonal[[]my_model.py:backend]*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*judge.py*")


def test_clauses_of_what_is_not_provided_are_skipped_with_the_reason(pytester):
    project(pytester, component="layer_norm")
    result = ran(pytester, "-rs", "-k", "causal-shape or causal-keeps-past")
    result.assert_outcomes(skipped=2, deselected=1 + CLAUSES - 2)
    result.stdout.fnmatch_lines(["SKIPPED*tiny provides no causal_mask"])
    result.stdout.fnmatch_lines(["*0 of 0 judged clauses conform*(2 absent)*"])


def test_a_backend_that_cannot_be_loaded_is_one_error(pytester):
    project(pytester)
    (pytester.path / "my_model.py").write_text("import nosuch")
    result = ran(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*could not be loaded: ModuleNotFoundError*"])


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("-o", "attentest_components=causl_mask"), "causal_mask"),
        (("--attentest-dtype", "float65"), "float64"),
    ],
)
def test_an_unknown_component_or_precision_is_one_line(pytester, words, near):
    project(pytester)
    result = ran(pytester, *words)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*did you mean {near}*"])


def test_installed_backends_are_looked_for_once(pytester, monkeypatch):
    asked = []
    monkeypatch.setattr(registry, "installed", lambda: asked.append("") or ["one"])
    config = pytester.parseconfig()
    assert [plugin._installed(config) for _ in range(2)] == [["one"], ["one"]]
    assert len(asked) == 1
