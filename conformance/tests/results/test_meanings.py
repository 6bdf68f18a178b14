"""Masks that a file makes with one meaning and takes with the other are an assumption."""

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
    assert not contradiction(read)


def test_masks_of_both_meanings_are_said() -> None:
    said = contradiction({"later": KEEPS, "attention": BLOCKED})
    assert "that later makes True may be attended, and in those of attention True blocks" in said
    assert "True blocks, and in those of a and b True may" in contradiction(
        {"later": HIDES, "a": SEEN, "b": SEEN}
    )
