"""The page that compares the implementations: it is written for all installed backends."""

import sys
from dataclasses import replace

import pytest
from compared import part_of, plain
from folders import DOCS

from attentest_spec import CHOICES, Limits

sys.path.append(str(DOCS / "_ext"))

from comparison_page import page  # a module of docs/_ext

PARTS = ("attention", "feed_forward", "padding_mask", "positional_encoding")


def some(name: str, *parts: str, **choices):
    return replace(part_of(plain(**choices), *(parts or PARTS)), name=name)


@pytest.fixture(scope="module")
def both() -> str:
    return page({"one": some("one"), "two": some("two", activation="gelu")})


@pytest.mark.proof
def test_choices_are_columns_with_links_to_their_pages(both):
    assert "| choice | paper | one | two |" in both
    assert "| **{ref}`activation <choice-activation>`** | `relu` | `relu` | `gelu` |" in both
    assert "({ref}`feed_forward.activation <feed_forward.activation>`)" in both
    assert all(f"<choice-{name}>" in both for name in CHOICES)


def test_numbers_and_their_explanations_are_shown(both):
    assert "| `feed_forward: inner` | equal |" in both
    assert "**two against one**" in both
    assert "`relu` becomes `gelu`" in both


def test_equal_pictures_are_shown_once(both):
    assert "<figcaption>one, two</figcaption>" in both
    assert both.count("### Positions") == 1
    assert 'aria-label="positions of one, two: column across, position down"' in both


@pytest.mark.proof
def test_parts_of_a_model_do_not_hide_it():
    text = page({"part": some("part"), "whole": some("whole", "model", "attention")})
    assert "`encoder.layers" not in text.partition("## Parts")[2]
    assert "They have no component in common" in text or "it is compared by" in text


def test_backend_that_cannot_be_compared_is_reported():
    low = replace(some("low"), limits=Limits(precisions=("bfloat16",)))
    assert "**low** was not compared: low does not compute in float64." in page(
        {"one": some("one"), "low": low}
    )


def test_page_is_linked_from_the_index():
    assert "\ngenerated/comparison\n" in (DOCS / "contents.txt").read_text(encoding="utf-8")
