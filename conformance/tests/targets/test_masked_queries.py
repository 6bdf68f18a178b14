"""A mask of padding that hides queries as well as keys is asked about, and a wrong one judged."""

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.targets.adapt import Unclear

FILE = SUPPORT / "wild" / "masked_queries.py"
COMPONENT = "multi_head_attention"
FORMULA = f"{COMPONENT}.formula"


@pytest.mark.parametrize("name", ["Attention", "PaddingIsTrue"])
def test_a_mask_that_hides_queries_too_is_asked_about(name: str) -> None:
    with pytest.raises(Unclear, match=r"mask hides the rows of queries .* --give mask=None"):
        attentest.adapted(f"{FILE}:{name}", COMPONENT)


def test_no_option_is_offered_that_the_code_refuses() -> None:
    with pytest.raises(Unclear, match=r"It needs one: mask=None raises an error\. --anyway"):
        attentest.adapted(f"{FILE}:NeedsItsMask", COMPONENT)


def test_it_is_judged_without_its_mask_where_the_user_says_so() -> None:
    target = f"{FILE}:Attention"
    report = attentest.check(target, COMPONENT, given={"mask": None}, clauses=[FORMULA])
    assert report[FORMULA].status == "pass", str(report)


@share(2)
@pytest.mark.parametrize("name", ["HidesWhatIsKept", "HidesQueriesAlone", "HidesTheNextKey"])
def test_a_wrong_mask_is_still_a_violation(name: str) -> None:
    report = attentest.check(f"{FILE}:{name}", COMPONENT, clauses=[FORMULA])
    assert report[FORMULA].status == "violation", str(report)
