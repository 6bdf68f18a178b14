"""The division of the tests: each is run by `unit`, by `proof` or by `exhaustive`."""

import pytest
from proof import divide

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.share(5, 2)
@pytest.mark.parametrize("one", range(42))
def test_many(one): ...

@pytest.mark.share(5, 2)
@pytest.mark.parametrize("one", [1, 2])
def test_few(one): ...

@pytest.mark.exhaustive
def test_costly(): ...

def test_plain(): ...
"""


@pytest.fixture
def items(pytester: pytest.Pytester) -> list[pytest.Item]:
    pytester.makeini("[pytest]\nmarkers =\n  share(unit, rest)\n  proof\n  exhaustive\n")
    found = pytester.getitems(TESTS)
    divide(found)
    return found


def test_a_share_is_of_the_unit_tests_and_the_rest_is_divided(items: list[pytest.Item]) -> None:
    many = [[*one.iter_markers()] for one in items if one.name.startswith("test_many")]
    names = [{mark.name for mark in marks} - {"parametrize", "share"} for marks in many]
    assert names.count(set()) == 9  # a fifth of 42
    assert 10 < names.count({"proof"}) < 24
    assert names.count({"proof", "exhaustive"}) == 33 - names.count({"proof"})


def test_one_of_few_is_a_unit_test(items: list[pytest.Item]) -> None:
    few = [one for one in items if one.name.startswith("test_few")]
    assert sum(one.get_closest_marker("proof") is None for one in few) == 1


def test_an_exhaustive_test_is_no_unit_test(items: list[pytest.Item]) -> None:
    alone = {one.name: one.get_closest_marker("proof") is None for one in items[-2:]}
    assert alone == {"test_costly": False, "test_plain": True}
