"""The pytest plugin, in a project of a user's own."""

from pathlib import Path

MINIATURES = Path(__file__).with_name("miniatures.py")
pytest_plugins = ["pytester"]
PICKED = ("-k", "test_one_key or test_formula", "attentest.suite.test_attention", "-q")


def test_a_clause_is_a_test_with_a_readable_id(pytester):
    pytester.makeini("[pytest]")
    result = pytester.runpytest_subprocess(
        "--pyargs", *PICKED, "--backend", f"{MINIATURES}:good", "-vv"
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_one_key*miniatures.py:good* PASSED*"])


def test_a_violation_fails_with_the_story_and_no_traceback(pytester):
    pytester.makeini("[pytest]")
    result = pytester.runpytest_subprocess("--pyargs", *PICKED, "--backend", f"{MINIATURES}:wrong")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*violation: attention.formula*", "*demands: *"])
    result.stdout.no_fnmatch_line("*judge.py*")


def test_one_line_in_the_ini_file_is_enough(pytester):
    pytester.makeini(f"[pytest]\nattentest_backend = {MINIATURES}:good")
    pytester.runpytest_subprocess("--pyargs", *PICKED).assert_outcomes(passed=2)


def test_an_unknown_backend_is_one_line(pytester):
    pytester.makeini("[pytest]")
    result = pytester.runpytest_subprocess("--pyargs", *PICKED, "--backend", "nosuch")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*There is no backend named 'nosuch'*"])


def test_what_is_not_provided_is_skipped_with_the_reason(pytester):
    pytester.makeini("[pytest]")
    result = pytester.runpytest_subprocess(
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


def test_the_plugin_imports_no_torch(pytester):
    pytester.makepyfile(
        "import sys\ndef test_nothing():\n"
        "    assert 'torch' not in sys.modules and 'hypothesis' not in sys.modules"
    )
    pytester.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)
