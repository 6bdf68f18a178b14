"""Programs judged by the suite: sound ones, wrong ones, and those that take no part in it."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import psutil
import pytest
from arrival import GUARD
from click.testing import CliRunner
from folders import DOCS, REPOSITORY, SUPPORT
from proof import share

from attentest.interfaces import python
from attentest.interfaces.cli.main import main
from attentest.judging.run import run
from attentest.results.plan import Plan
from attentest.results.run import BackendRun
from attentest.results.verdict import Status
from attentest.targets import resolve
from attentest_spec.stdio import Program

JAVASCRIPT = DOCS / "examples" / "javascript"
PROGRAM = REPOSITORY / "spec" / "tests" / "test_stdio" / "stdio_program.py"
MISBEHAVING = f"stdio:{sys.executable} -S -E {PROGRAM}"

node = pytest.mark.skipif(not shutil.which("node"), reason="Node.js is not installed")


def served(target: str) -> str:
    return f"stdio:{sys.executable} {SUPPORT / 'served.py'} {target}"


def judged(target: str, slugs: Sequence[str], limit: float = 60.0) -> BackendRun:
    plan = Plan(tuple(slugs), effort=0.2, shrink=False, diagnose=False, limit=limit)
    (result,) = run([target], plan, workers=1)
    assert not result.failure, result.failure
    return result


def statuses(result: BackendRun) -> dict[str, Status]:
    return {one.clause: one.status for one in result.verdicts}


SOME = (
    "attention.formula",
    "attention.gradient",
    "multi_head_attention.indivisible-width-refused",
    "multi_head_attention.formula",
    "layer_norm.float32",
    "encoder.formula",
    "model.formula",
    "model.random-in-train",
    "model.out-of-range-refused",
    "model.pickle",
)


@pytest.mark.proof
def test_a_backend_behind_the_door_gets_the_verdicts_that_it_gets_without_it():
    plain = f"{SUPPORT / 'styles_of_served.py'}:backend"
    direct, through = judged(plain, SOME), judged(served(plain), SOME)
    assert statuses(direct).pop("model.pickle") == "pass"
    assert statuses(through) == {**statuses(direct), "model.pickle": "absent"}
    assert not any(status.fails for status in statuses(through).values())
    told = {one.clause: one.budget for one in direct.verdicts}
    assert {one.clause: one.budget for one in through.verdicts if one.budget} == {
        slug: share for slug, share in told.items() if share
    }  # not a bit is lost on the way


def test_a_mistake_is_found_through_the_door_and_named():
    wrong = served(f"{SUPPORT / 'miniatures.py'}:wrong")
    plan = Plan(("attention.formula",), effort=0.2)
    (result,) = run([wrong], plan, workers=1)
    (verdict,) = result.verdicts
    assert verdict.status == "violation"
    assert verdict.diagnosis
    assert "attentest_spec.stdio" in verdict.counterexample.code


@share(2, rest=1)
@pytest.mark.parametrize(
    ("moment", "status", "words"),
    [
        ("dies", "error", "it ended with exit code 3; its stderr ends: all was well / out of luck"),
        ("hangs", "timeout", "no answer within 2 seconds"),
        ("garbage", "error", "which is not an answer"),
        ("short", "error", "take 24 bytes, and data has 8"),
        ("floods", "error", "MiB without a line's end"),
        ("complains", "timeout", "no answer within 2 seconds"),
        ("reads_no_more", "timeout", "no answer within 2 seconds"),
        ("deaf_at_stop", "violation", "The output has the shape (1,)"),
    ],
)
def test_a_program_that_misbehaves_gets_a_verdict_with_the_reason(moment, status, words, tmp_path):
    mark = str(tmp_path)  # by which its processes are found, whoever their parent is by now
    limit = 2.0 if status == "timeout" else 60.0
    result = judged(f"{MISBEHAVING} {moment} {mark}", ["layer_norm.shapes"], limit)
    (verdict,) = result.verdicts
    assert (verdict.status, words in verdict.message) == (status, True), verdict.message
    left = [one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())]
    assert not psutil.wait_procs(left, timeout=GUARD)[1]


def test_a_program_that_does_not_start_is_not_loaded():
    told = CliRunner().invoke(main, ["run", f"{MISBEHAVING} dies_at_start", "--component", "masks"])
    assert told.exit_code == 2  # no such component
    told = CliRunner().invoke(main, ["run", f"{MISBEHAVING} dies_at_start"])
    assert told.exit_code == 3
    assert "it ended with exit code 3" in told.output


def test_the_python_door_takes_a_program_and_a_target():
    target = f"{SUPPORT / 'miniatures.py'}:good"
    backend = Program([sys.executable, str(SUPPORT / "served.py"), target])
    try:
        report = python.check(backend, "attention", clauses=["attention.one-key"])
    finally:
        backend.close()
    assert report.conforms
    target = served(f"{SUPPORT / 'miniatures.py'}:good")
    assert python.check(target, "attention", clauses=["attention.one-key"]).conforms


def test_the_code_of_a_witness_starts_the_program_again():
    code = resolve.loader("stdio:node 'a b.mjs'")
    assert code.endswith("backend = Program(['node', 'a b.mjs'])")
    named: dict[str, Any] = {}
    exec(resolve.loader(f"{MISBEHAVING} sound"), named)
    assert named["backend"].name == "told"
    named["backend"].close()


LAYER_NORM = f"stdio:{sys.executable} -S -E {JAVASCRIPT.parent / 'program.py'}"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("check", LAYER_NORM, "--clause", "layer_norm.formula"), "1 of 1 judged clauses conform"),
        (("identify", LAYER_NORM), "none of them contradicts"),
        (("compare", LAYER_NORM, f"{SUPPORT / 'styles_of_served.py'}"), "layer_norm: result"),
        (("trace", LAYER_NORM), "are equal to those of the reference"),
    ],
)
def test_every_command_takes_a_program(words, told):
    found = CliRunner().invoke(main, list(words))
    assert told in " ".join(found.output.split()), found.output


@pytest.mark.proof
def test_pytest_takes_a_program(tmp_path):
    settings = f'[pytest]\nattentest_backend = "{LAYER_NORM}"\nattentest_components = layer_norm\n'
    (tmp_path / "pytest.ini").write_text(settings, encoding="utf-8")
    words = ["-k", "layer_norm and formula"]
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stdout
    assert "1 of 1 judged clauses conform" in told.stdout


# The port in JavaScript

PORT = f"stdio:node {JAVASCRIPT / 'program.mjs'}"
PORTED = (
    "attention.formula",
    "attention.masking-exact",
    "attention.float32",
    "multi_head_attention.formula",
    "multi_head_attention.indivisible-width-refused",
    "multi_head_attention.parameters-round-trip",
    "layer_norm.formula",
    "layer_norm.constant-row-finite",
    "positional_encoding.far-positions",
    "positional_encoding.odd-width",
)


@node
def test_the_port_conforms():
    found = statuses(judged(PORT, PORTED))
    assert set(found.values()) == {"pass"}, found


@node
def test_a_mistake_in_the_port_is_found(tmp_path):
    for file in JAVASCRIPT.glob("*.mjs"):
        text = file.read_text(encoding="utf-8")
        (tmp_path / file.name).write_text(text.replace(" / Math.sqrt(width)", ""), encoding="utf-8")
    found = statuses(judged(f"stdio:node {tmp_path / 'program.mjs'}", PORTED))
    wrong = {slug for slug, status in found.items() if status == "violation"}
    assert {"attention.formula", "multi_head_attention.formula"} <= wrong
    assert "layer_norm.formula" not in wrong
