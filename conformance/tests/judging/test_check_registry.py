"""Clauses and checks hold each other: every clause has its check, every check its clause."""

import inspect

import pytest

from attentest.judging.check import check
from attentest.judging.registry import check_of, checks
from attentest_spec import CHOICES, UnknownName
from attentest_spec.clauses import clauses


def test_every_clause_has_a_check_and_every_check_a_clause():
    assert set(checks()) == set(clauses())


def test_check_of_a_clause_is_in_its_chapter_and_has_its_name():
    for slug in clauses():
        found = check_of(slug)
        chapter, _, name = slug.partition(".")
        assert f"{found.module}.".startswith(f"attentest.suite.test_{chapter}."), slug
        assert found.name == "test_" + name.replace("-", "_")
        assert list(inspect.signature(found.body).parameters) == ["subject", "draw"], slug


def test_there_are_at_least_a_hundred_clauses():
    assert len(clauses()) >= 100


def test_each_choice_has_one_clause_that_reports_deviations():
    for name, choice in CHOICES.items():
        judging = [clause.slug for clause in clauses().values() if clause.choice == name]
        assert judging == [choice.clause], name


def test_a_clause_cannot_have_two_checks():
    with pytest.raises(ValueError, match="two checks"):
        check("attention.formula")(lambda subject, draw: None)


def test_an_unknown_clause_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match=r"attention\.formula"):
        check_of("attention.formulae")
