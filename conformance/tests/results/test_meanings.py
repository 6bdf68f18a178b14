"""Masks that a file makes with one meaning and takes with the other."""

import pytest

from attentest.results.meanings import contradiction

KEEPS = ["length=size", "what it makes: True or 1 may be attended (as a probing call shows)"]
HIDES = ["what it makes: True or 1 blocks (as a probing call shows)"]
SHAPE = "any shape that broadcasts to (B, H, Q, K) (as a probing call shows)"
SEEN, BLOCKED = [f"mask: True may be attended; {SHAPE}"], [f"mask: True blocks; {SHAPE}"]


@pytest.mark.parametrize(
    "read",
    [
        {"later": KEEPS, "attention": SEEN},
        {"later": HIDES, "attention": BLOCKED},
        {"attention": BLOCKED},
        {"later": KEEPS, "attention": ["mask: True blocks; by its name"]},
        {"later": KEEPS, "attention": BLOCKED, "layer": SEEN},
    ],
)
def test_masks_of_one_meaning_say_nothing(read: dict[str, list[str]]) -> None:
    assert contradiction(read, "") is None


MAKER = "def later(size):\n    return torch.ones(size, size).tril() == 1\n\n"
TAKER = "def attention(q, k, v, mask):\n    return q.masked_fill(mask != 0, -1e9) @ v\n\n"
CALLS = [
    ("attention(q, k, v, ~later(3))", True),
    ("attention(q, k, v, ~mask)", True),
    ("attention(q, k, v, later(3) == 0)", True),
    ("attention(q, k, v, mask[:, :3] == 0)", True),
    ("attention(q, k, v, pad_mask(ids) == False)", True),
    ("attention(q, k, v, 1 - causal_mask)", True),
    ("attention(q, k, v, mask.logical_not())", True),
    ("attention(q, k, v, torch.logical_not(keep))", True),
    ("attention(q, k, v, mask)", False),
    ("attention(q, k, v, tokens == 0)", False),
]


@pytest.mark.parametrize(("call", "turned"), CALLS)
def test_masks_of_both_meanings_are_a_question_where_nothing_turns_them(
    call: str, turned: bool
) -> None:
    source = f"{MAKER}{TAKER}def run(q, k, v, mask, tokens):\n    return {call}\n"
    found = contradiction({"later": KEEPS, "attention": BLOCKED}, source)
    assert found is not None
    made = "that later makes True may be attended, and in those of attention True blocks"
    assert made in found.text
    assert found.turned is turned
    assert ("assumed that masks are turned around" in found.text) is turned


def test_masks_of_both_meanings_are_turned_where_the_source_is_not_known() -> None:
    found = contradiction({"later": HIDES, "a": SEEN, "b": SEEN}, "")
    assert found is not None
    assert "True blocks, and in those of a and b True may" in found.text
    assert found.turned
