"""A process that judges copies and pickles dictionaries faster, with the same results."""

import copy
import copyreg
import pickle
from collections import OrderedDict
from typing import Any

import pytest

from attentest.harness.process_state import copy_modules_faster


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    before = copyreg.dispatch_table.get(OrderedDict)
    monkeypatch.setitem(copyreg.dispatch_table, OrderedDict, before)  # taken out again afterwards
    deep = vars(copy)["_deepcopy_dispatch"]
    monkeypatch.setitem(deep, OrderedDict, deep.get(OrderedDict))
    copy_modules_faster()
    assert copyreg.dispatch_table[OrderedDict] is not before


class Counted(OrderedDict[str, Any]):
    """A class of a user's that says how it is copied."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Counted":
        return Counted(copied=True)


def example() -> OrderedDict[str, Any]:
    """Return a dictionary with attributes, an order of its own, and itself inside."""
    one: OrderedDict[str, Any] = OrderedDict(b=[1, 2], a=(3,))
    one._metadata = {"version": [1]}  # type: ignore[attr-defined]  # as a state_dict of torch has
    one["self"] = one
    return one


def assert_equal_and_apart(found: Any, given: Any) -> None:
    assert type(found) is OrderedDict
    assert list(found) == list(given)
    assert found["b"] == given["b"]
    assert found["b"] is not given["b"]
    assert found["self"] is found
    assert found._metadata == given._metadata
    assert found._metadata["version"] is not given._metadata["version"]


@pytest.mark.usefixtures("faster")
def test_faster_deep_copy_equals_the_usual_one() -> None:
    given = example()
    assert_equal_and_apart(copy.deepcopy(given), given)
    assert copy.deepcopy(Counted()) == Counted(copied=True)


@pytest.mark.usefixtures("faster")
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_faster_reduction_is_pickled_as_usual(protocol: int) -> None:
    given = example()
    assert_equal_and_apart(pickle.loads(pickle.dumps(given, protocol)), given)


@pytest.mark.usefixtures("faster")
def test_shallow_copy_shares_the_values() -> None:
    given = example()
    found = copy.copy(given)
    assert found is not given
    assert found == given
    assert found["b"] is given["b"]
