"""Lengths in the place of a mask: the number of keys that are no padding."""

import sys

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.masks import is_length

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))

MASKED = ("masked-keys-ignored", "mask-shapes")
"""Clauses of attention that hide keys."""


def statuses(name: str, component: str, *names: str, **settled: object) -> dict[str, str]:
    read = attentest.adapted(f"{WILD / 'lengths.py'}:{name}", component, **settled)
    bench = Bench.for_status(read)
    return {one: judge(bench, f"{component}.{one}").status.value for one in names}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("padded", ("none", "padding")),
        ("ragged", ("none", "padding", "causal", "per-sample")),
    ],
)
def test_lengths_are_read_as_a_mask_that_hides_the_last_keys(name, kinds):
    read = attentest.adapted(f"{WILD / 'lengths.py'}:{name}", "attention")
    assert read.limits.right_padded == ("mask",)
    assert tuple(read.limits.masks) == kinds
    assert "the number of keys that may be attended" in read.summary
    assert set(statuses(name, "attention", *MASKED, "formula").values()) == {"pass"}


def test_fully_masked_row_is_a_length_of_zero():
    assert statuses("ragged", "attention", "fully-masked-row") == {"fully-masked-row": "pass"}
    assert statuses("padded", "attention", "fully-masked-row") == {"fully-masked-row": "absent"}


@share(2)
@pytest.mark.parametrize("name", ["too_many", "too_few", "inverted"])
def test_wrong_lengths_are_violations(name):
    assert set(statuses(name, "attention", *MASKED).values()) == {"violation"}


@share(2)
@pytest.mark.parametrize("name", ["ignored", "of_longest", "of_first"])
def test_lengths_that_do_something_else_are_a_question_whose_advice_works(name):
    with pytest.raises(Unclear, match="how many keys are no padding") as failure:
        statuses(name, "attention")
    assert "--give lengths=None" in str(failure.value)
    assert "--set mask=lengths" in str(failure.value)
    assert statuses(name, "attention", "formula", given={"lengths": None}) == {"formula": "pass"}
    judged = statuses(name, "attention", "mask-shapes", mask="lengths")
    assert judged == {"mask-shapes": "violation"}


def test_lengths_that_no_call_accepts_are_named_as_not_given():
    read = attentest.adapted(f"{WILD / 'lengths.py'}:of_lists", "attention")
    assert "not given: lengths; nothing that depends on it is judged" in read.summary
    assert tuple(read.limits.masks) == ("none",)
    assert read.limits.right_padded == ()


def test_layer_that_needs_lengths_is_judged_with_them():
    read = attentest.adapted(f"{WILD / 'lengths.py'}:EncoderLayer")
    bench = Bench.for_status(read, effort=0.2)
    names = ("padding-content", "mask-shapes", "norm-placement")
    assert {judge(bench, f"encoder.{one}").status.value for one in names} == {"pass"}


def test_written_adapter_of_lengths_judges_as_the_inferred_one(tmp_path):
    read = attentest.adapted(f"{WILD / 'lengths.py'}:ragged", "attention")
    file = tmp_path / "written.py"
    file.write_text(read.written())
    report = attentest.check(f"{file}:backend", clauses=[f"attention.{one}" for one in MASKED])
    assert report.conforms, str(report)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [("valid_lens", True), ("src_lengths", True), ("max_len", False), ("seq_len", False)],
)
def test_lengths_are_known_by_the_name(argument, expected):
    assert is_length(argument) is expected
