"""Rows of an embedding that are kept for padding: inferred, declared, honoured and reported."""

from dataclasses import replace

import pytest
from folders import SUPPORT

import attentest
from attentest_spec import Limits
from attentest_spec.torch import TorchBackend

FILE = SUPPORT / "wild" / "embeddings.py"
ROW = "embedding.pad-row"


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("FixedPadding", {"pad": 0, "trained_pad": False}),
        ("GivenPadding", {"pad": None, "trained_pad": False}),
        ("NoPadding", {"pad": None, "trained_pad": True}),
    ],
)
def test_pad_row_is_inferred_and_conforms(name: str, limits: dict[str, object]) -> None:
    read = attentest.adapted(f"{FILE}:{name}", "embedding")
    assert {key: getattr(read.limits, key) for key in limits} == limits
    said = "\n".join(read.understood)  # type: ignore[attr-defined]
    assert ("gets no gradient, as with padding_idx" in said) == (not limits["trained_pad"])
    assert ("its pad id is always 0" in said) == (limits["pad"] == 0)
    report = attentest.check(read, "embedding")
    assert all(not verdict.status.broken for verdict in report), str(report)


def declared(name: str, limits: Limits) -> TorchBackend:
    read = attentest.adapted(f"{FILE}:{name}", "embedding")
    assert isinstance(read, TorchBackend)
    plain = TorchBackend(name="mine", title="", recipes=read.recipes, choices=read.choices)
    return replace(plain, limits=limits)


@pytest.mark.parametrize(
    ("name", "limits", "told"),
    [
        ("GivenPadding", Limits(dropout=False), "this is not declared"),
        ("NoPadding", Limits(dropout=False, trained_pad=False), "it has a gradient"),
    ],
)
def test_pad_row_against_the_declaration_is_one_warning(
    name: str, limits: Limits, told: str
) -> None:
    report = attentest.check(declared(name, limits), "embedding")
    assert [one.clause for one in report if one.status.broken] == [ROW], str(report)
    assert report[ROW].status == "warning"
    assert told in report[ROW].message


@pytest.mark.parametrize("name", ["FixedPadding", "TwoRowsFrozen"])
def test_row_of_another_id_that_is_not_trained_is_a_violation(name: str) -> None:
    clause = "embedding.gradient-only-to-used-rows"
    report = attentest.check(declared(name, Limits(dropout=False)), clauses=[clause])
    assert report[clause].status == "violation"


def test_two_frozen_rows_are_not_taken_for_a_pad_id() -> None:
    slugs = ["embedding.gradient-only-to-used-rows"]
    report = attentest.check(f"{FILE}:TwoRowsFrozen", "embedding", clauses=slugs)
    assert not report.conforms
