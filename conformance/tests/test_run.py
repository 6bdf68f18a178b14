"""The worker processes: whatever a backend does, its verdict has the reason and others are safe."""

from pathlib import Path

import pytest

from attentest.plan import Plan, select
from attentest.run import PATIENCE, Judged, run

MINIATURES = Path(__file__).with_name("miniatures.py")
SLUGS = (
    "attention.formula",
    "attention.shapes",
    "attention.one-key",
    "attention.key-order",
    "attention.convex-hull",
)


def judged(name: str, *others: str, limit: float = 20.0, slugs: tuple[str, ...] = SLUGS) -> Judged:
    plan = Plan(slugs, shrink=False, effort=0.3, limit=limit)
    return run([f"{MINIATURES}:{one}" for one in (name, *others)], plan)[0]


def statuses(result: Judged) -> set[str]:
    return {verdict.status for verdict in result.verdicts}


def test_a_sound_miniature_passes():
    result = judged("good")
    assert statuses(result) == {"pass"}
    assert [verdict.clause for verdict in result.verdicts] == list(SLUGS)


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("raising", "error", "out of luck"),
        ("exiting", "error", "SystemExit"),
        ("listing", "violation", "returned a list"),
        ("empty", "violation", "returned nothing"),
        ("nans", "violation", "differs by inf"),
        ("zeros", "violation", "differs by"),
        ("writing", "violation", "wrote into its input"),
        ("fickle", "violation", "differs by"),
    ],
)
def test_a_bad_answer_gets_its_verdict(name, status, words):
    first = judged(name, slugs=SLUGS[:1]).verdicts[0]
    assert first.status == status
    assert words in first.message


@pytest.mark.parametrize(("name", "words"), [("dying", "exit code 3"), ("segfaulting", "SIGSEGV")])
def test_a_dead_worker_is_replaced_until_patience_ends(name, words):
    result = judged(name)
    assert statuses(result) == {"crash"}
    assert words in result.verdicts[0].message
    assert "not tried" in result.verdicts[PATIENCE].message
    assert len(result.verdicts) == len(SLUGS)


def test_a_hanging_backend_times_out_and_leaves_others_alone():
    plan = Plan(SLUGS, shrink=False, effort=0.3, limit=1.0)
    hanging, good = run([f"{MINIATURES}:hanging", f"{MINIATURES}:good"], plan, workers=2)
    assert statuses(hanging) == {"timeout"}
    assert "within 1 seconds" in hanging.verdicts[0].message
    assert statuses(good) == {"pass"}


def test_printing_never_reaches_the_pipe():
    assert statuses(judged("printing")) == {"pass"}


def test_a_violation_has_a_witness_that_reproduces_it(capsys):
    plan = Plan(SLUGS[:1])
    verdict = run([f"{MINIATURES}:wrong"], plan)[0].verdicts[0]
    assert verdict.status == "violation"
    assert verdict.witness is not None
    exec(verdict.witness.code, {})
    printed = capsys.readouterr().out
    assert verdict.witness.actual.strip("[] ").split()[0][:4] in printed


def test_what_cannot_be_loaded_has_a_reason():
    plan = Plan(select(slugs=SLUGS[:1]))
    missing, nameless = run(["/no/such/file.py", f"{MINIATURES}:nobody"], plan)
    assert "there is no file" in missing.failure
    assert "no object named 'nobody'" in nameless.failure
    assert not missing.verdicts
