"""The matrix in a browser: filters, the dialog, the keyboard, the address."""

import json
from pathlib import Path

import pytest
from conftest import Open, Shown
from playwright.sync_api import Locator, expect
from report_cases import SLUGS

CASE = f"#case/bad/{SLUGS[1]}"


@pytest.fixture
def shown(opened: Open, everything: Path) -> Shown:
    return opened(everything)


def cell(shown: Shown, slug: str, backend: int) -> Locator:
    return shown.page.locator(f'tr[data-c="{slug}"] td[data-b="{backend}"] button')


def count(shown: Shown) -> str:
    return shown.page.locator("#count").inner_text()


# Filters ------------------------------------------------------------------------------------------


def test_all_is_shown_at_first_with_its_denominators(shown: Shown) -> None:
    assert shown.visible() == list(SLUGS)
    assert count(shown) == "4 of 4 clauses, 12 of 12 verdicts of 4 of 4 backends."
    assert shown.at("")


def test_rows_in_which_all_pass_are_collapsed(opened: Open, mostly_right: Path) -> None:
    shown = opened(mostly_right)
    assert shown.visible() == [SLUGS[1]]
    assert "3 rows in which all pass or provide nothing" in count(shown)
    assert count(shown).startswith("4 of 4 clauses, 8 of 8 verdicts")
    headings = shown.page.locator("tr.chapter:visible").all_inner_texts()
    assert "3 of 4 conform" in " ".join(headings)
    shown.page.check("#f-all")
    assert shown.visible() == list(SLUGS)
    assert shown.at("#?rows=all")
    shown.page.uncheck("#f-all")
    shown.page.check("#f-status input[value=pass]")
    assert shown.visible() == list(SLUGS)
    shown.page.click("#f-clear")
    shown.page.fill("#f-text", SLUGS[0])
    assert shown.visible() == [SLUGS[0]]


def test_address_of_a_collapsed_clause_shows_its_row(opened: Open, mostly_right: Path) -> None:
    shown = opened(mostly_right, f"#clause/{SLUGS[2]}")
    assert SLUGS[2] in shown.visible()


def test_filter_by_chapter(shown: Shown) -> None:
    shown.page.select_option("#f-chapter", "attention")
    assert shown.visible() == [SLUGS[1], SLUGS[2]]
    assert count(shown).startswith("2 of 4 clauses, 6 of 12 verdicts")
    assert shown.page.locator("tbody[data-chapter=masks]").is_hidden()
    assert shown.at("#?chapter=attention")


def test_filter_by_level(shown: Shown) -> None:
    shown.page.select_option("#f-level", "SHOULD")
    assert shown.visible() == []
    shown.page.select_option("#f-level", "MUST")
    assert len(shown.visible()) == len(SLUGS)
    assert shown.at("#?level=MUST")


def test_filter_by_verdict(shown: Shown) -> None:
    shown.page.check("#f-status input[value=violation]")
    shown.page.check("#f-status input[value=warning]")
    assert shown.visible() == [SLUGS[0], SLUGS[1]]
    assert count(shown).startswith("2 of 4 clauses, 2 of 12 verdicts")
    assert shown.at("#?verdict=warning&verdict=violation")
    assert cell(shown, SLUGS[1], 0).locator("xpath=..").get_attribute("class") == "s-pass dim"


def test_filter_by_backend(shown: Shown) -> None:
    shown.page.uncheck("#f-backend input[value='1']")
    shown.page.uncheck("#f-backend input[value='3']")
    assert shown.page.locator("#grid thead th:visible").all_inner_texts() == [
        "clause",
        "good",
        "worse",
    ]
    assert count(shown) == "4 of 4 clauses, 8 of 8 verdicts of 2 of 4 backends."
    assert shown.at("#?without=bad&without=away")


@pytest.mark.parametrize("text", ["ONE-key", "no query asks", "differs by 0.5"])
def test_filter_by_text(shown: Shown, text: str) -> None:
    data = json.loads(shown.page.locator("#data").text_content() or "")
    said = {one["slug"]: one["slug"] + one["text"] for one in data["clauses"]}
    for cases in data["cases"]:
        for slug, one in cases.items():
            said[slug] += one.get("message", "")
    shown.page.fill("#f-text", text)
    wanted = [slug for slug, words in said.items() if text.lower() in words.lower()]
    assert shown.visible() == wanted


def test_totals_follow_the_filters_and_clear_takes_them_back(shown: Shown) -> None:
    totals = shown.page.locator("#grid tfoot td")
    before = totals.all_inner_texts()
    assert before == ["4/4", "1/3", "1/4", "not loaded"]
    shown.page.select_option("#f-chapter", "encoder")
    assert totals.all_inner_texts() == ["1/1", "0/0", "1/1", "not loaded"]
    shown.page.click("#f-clear")
    assert totals.all_inner_texts() == before
    assert shown.at("")


def test_filters_are_restored_from_the_address(opened: Open, everything: Path) -> None:
    place = "#?text=formula&chapter=attention&verdict=violation&without=good"
    shown = opened(everything, place)
    assert shown.visible() == [SLUGS[1]]
    assert shown.page.input_value("#f-text") == "formula"
    assert not shown.page.is_checked("#f-backend input[value='0']")
    assert shown.page.locator("#grid thead th:visible").count() == 4


# The dialog ---------------------------------------------------------------------------------------


def test_a_click_tells_all_about_a_verdict(shown: Shown) -> None:
    cell(shown, SLUGS[1], 1).click()
    dialog = shown.page.locator("dialog")
    told = dialog.inner_text()
    for part in (
        f"{SLUGS[1]}, bad",
        "violates",
        "MUST",
        "softmax(Q K^T / sqrt(d_k)) V",
        "It differs by 0.5.",
        "a note",
        "scores are not scaled (it gives the same result to 1e-13)",
        "build attention",
        "[1.0]",
        "[2.0]",
        "print(1 < 2)",
        "Why it matters",
        "section 3.2.1",
    ):
        assert part in told
    assert shown.at(CASE)
    shown.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert shown.at("")
    expect(cell(shown, SLUGS[1], 1)).to_be_focused()


def test_enter_opens_and_the_button_closes(shown: Shown) -> None:
    cell(shown, SLUGS[2], 1).focus()
    shown.page.keyboard.press("Enter")
    assert shown.page.locator("#case-title").inner_text() == f"{SLUGS[2]}, bad"
    shown.page.click("dialog .close")
    expect(shown.page.locator("dialog")).to_be_hidden()
    expect(cell(shown, SLUGS[2], 1)).to_be_focused()


def test_a_deep_link_opens_a_verdict_and_keeps_the_filters(opened: Open, everything: Path) -> None:
    shown = opened(everything, f"{CASE}?chapter=attention")
    assert shown.page.locator("#case-title").inner_text() == f"{SLUGS[1]}, bad"
    shown.page.keyboard.press("Escape")
    assert shown.at("#?chapter=attention")
    expect(cell(shown, SLUGS[1], 1)).to_be_focused()
    assert shown.visible() == [SLUGS[1], SLUGS[2]]


def test_links_of_the_findings_open_the_verdict_and_give_the_focus_back(shown: Shown) -> None:
    links = shown.page.locator("#findings a")
    assert links.count() == 6
    for number in range(links.count()):
        links.nth(number).click()
        slug, backend = str(links.nth(number).get_attribute("href")).split("/")[:0:-1]
        expect(shown.page.locator("#case-title")).to_have_text(f"{slug}, {backend}")
        shown.page.keyboard.press("Escape")
        expect(links.nth(number)).to_be_focused()


def test_a_link_that_leads_nowhere_opens_nothing(opened: Open, everything: Path) -> None:
    for place in ("#case/nobody/attention.formula", "#case/bad/none", "#case/%E0%A4%A/x", "#case"):
        assert opened(everything, place).page.locator("dialog").is_hidden()


def test_a_verdict_that_is_missing_says_so(shown: Shown) -> None:
    cell(shown, SLUGS[0], 3).click()
    assert "there is no verdict" in shown.page.locator("dialog").inner_text()


def test_the_reproduction_is_copied(opened: Open, everything: Path) -> None:
    shown = opened(everything, CASE, permissions=["clipboard-read", "clipboard-write"])
    shown.page.click("dialog .copy")
    shown.page.get_by_text("Copied", exact=True).wait_for()
    copied = shown.page.evaluate("navigator.clipboard.readText()")
    assert copied == "import numpy\nprint(1 < 2)"


# The keyboard -------------------------------------------------------------------------------------


def focused(shown: Shown) -> tuple[str, str]:
    slug, backend = shown.page.evaluate(
        "[document.activeElement.closest('tr').dataset.c,"
        " document.activeElement.parentElement.dataset.b]"
    )
    return slug, backend


def test_arrows_go_from_verdict_to_verdict(shown: Shown) -> None:
    cell(shown, SLUGS[0], 0).focus()
    for key, place in (
        ("ArrowRight", (SLUGS[0], "1")),
        ("ArrowDown", (SLUGS[1], "1")),
        ("ArrowDown", (SLUGS[2], "1")),
        ("End", (SLUGS[2], "3")),
        ("ArrowRight", (SLUGS[2], "3")),
        ("ArrowUp", (SLUGS[1], "3")),
        ("Home", (SLUGS[1], "0")),
        ("ArrowLeft", (SLUGS[1], "0")),
        ("Control+End", (SLUGS[3], "3")),
        ("Control+Home", (SLUGS[0], "0")),
        ("ArrowUp", (SLUGS[0], "0")),
    ):
        shown.page.keyboard.press(key)
        assert focused(shown) == place


def test_arrows_pass_over_what_is_filtered_out(shown: Shown) -> None:
    shown.page.check("#f-status input[value=error]")
    shown.page.check("#f-status input[value=warning]")
    shown.page.uncheck("#f-backend input[value='1']")
    shown.page.check("#f-backend input[value='1']")
    shown.page.uncheck("#f-backend input[value='0']")
    cell(shown, SLUGS[0], 1).focus()
    shown.page.keyboard.press("ArrowDown")
    assert focused(shown) == (SLUGS[2], "1")
    shown.page.keyboard.press("ArrowLeft")
    assert focused(shown) == (SLUGS[2], "1")


def test_one_verdict_is_in_the_order_of_tabs(shown: Shown) -> None:
    assert shown.page.locator("#grid [tabindex='0']").count() == 1
    shown.page.keyboard.press("Tab")
    assert shown.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert shown.page.evaluate("getComputedStyle(document.activeElement).left") == "0px"
