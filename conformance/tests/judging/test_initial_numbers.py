"""First numbers that fit no declared option are judged; undeclared ones are reported as notes."""

from dataclasses import replace

import pytest

from attentest.faults.unusual import UNUSUAL
from attentest.judging.bench import Bench
from attentest.judging.judge import judge


def verdict(name, clause, **choices):
    """Judge an unusual model under further choices, without a diagnosis."""
    backend = replace(UNUSUAL[name], choices={**UNUSUAL[name].choices, **choices})
    return judge(Bench.for_status(backend), f"initialisation.{clause}")


def test_distribution_that_is_not_listed_is_a_note():
    found = verdict("truncated", "matrices")
    assert found.status == "pass"
    assert found.notes == ("initialisation is not declared; measured: none of the options.",)


def test_distribution_that_is_listed_and_not_declared_is_a_note():
    found = verdict("numbers-of-numpy", "matrices", initialisation="unspecified")
    assert found.status == "pass"
    assert found.notes == ("initialisation is not declared; measured: xavier-uniform.",)


@pytest.mark.parametrize("option", ["xavier-normal", "torch-linear", "normal-0.02"])
def test_declared_distribution_is_judged(option):
    found = verdict("numbers-of-numpy", "matrices", initialisation=option)
    assert found.status == "violation"
    assert f"initialisation is declared as {option}" in found.message


def test_matrices_of_zero_are_no_copies_of_each_other():
    for clause in ("varied", "rows-differ", "matrices-differ", "constructions-differ"):
        assert verdict("zero-branches", clause).status == "pass"
