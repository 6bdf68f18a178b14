"""The causes in a browser: the answer on top, each with its line, found by their words, copied."""

from pathlib import Path

import pytest
from conftest import Open, Shown
from playwright.sync_api import expect


@pytest.fixture
def shown(opened: Open, caused: Path) -> Shown:
    return opened(caused)


def test_answer_is_on_the_first_screen_and_leads_to_the_cause(shown: Shown) -> None:
    answer = shown.page.locator(".answer")
    expect(shown.page.locator("h1")).to_have_text("1 of 2 backends conforms")
    expect(answer).to_contain_text("unscaled: 4 clauses broken by 2 causes; likely cause")
    expect(answer).to_contain_text("at model.py:7")
    box = answer.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 300
    answer.locator("a").click()
    expect(shown.page.locator("#cause-1-1")).to_be_in_viewport()


def test_cause_shows_its_line_and_what_follows_from_it(shown: Shown) -> None:
    text = shown.page.locator("#cause-1-1").inner_text()
    for part in (
        "model.py:7",
        "confirmed",
        "7 | weights = scores.softmax(-1)",
        "the product of query and key, unchanged",
        "scores / sqrt(d_k), where sqrt(d_k) = 2.83",
        "Breaks attention.formula: The output MUST equal",
        "2 clauses follow from it: attention.one-key, attention.fully-masked-row",
        "Not determined while this fails: fully_masked_row",
    ):
        assert part in text
    assert "model.py" not in shown.page.locator("#cause-1-2").inner_text()


def test_search_finds_clauses_by_the_words_of_their_cause(shown: Shown) -> None:
    for words in ("unchanged", "model.py:7", "scores.softmax"):
        shown.page.fill("#f-text", words)
        assert shown.visible() == [
            "attention.formula",
            "attention.one-key",
            "attention.fully-masked-row",
        ]
    shown.page.uncheck("#f-backend input[value='1']")
    assert shown.visible() == []


def test_dialog_leads_to_the_cause(shown: Shown) -> None:
    shown.page.locator('tr[data-c="attention.one-key"] td[data-b="1"] button').click()
    shown.page.locator("dialog a").click()
    expect(shown.page.locator("dialog")).to_be_hidden()
    expect(shown.page.locator("#cause-1-1")).to_be_in_viewport()


def test_reproduction_of_a_cause_is_copied(opened: Open, caused: Path) -> None:
    shown = opened(caused, permissions=["clipboard-read", "clipboard-write"])
    script = shown.page.locator("#cause-1-1 .script")
    script.locator("summary").click()
    script.get_by_text("Copy").click()
    script.get_by_text("Copied").wait_for()
    copied = shown.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("# model.py:7  the product of query and key")
    assert copied.endswith("import numpy\nprint(1 < 2)\n")
