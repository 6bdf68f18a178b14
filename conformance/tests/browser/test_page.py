"""The whole page in a browser: light, dark, phone, paper, hostile texts, time to open."""

import json
import os
from pathlib import Path

import pytest
from conftest import Open
from playwright.sync_api import expect
from report_cases import HOSTILE, SLUGS, comparison, cost, learning, many, result, written

from attentest.views import html
from attentest_spec.clauses import clauses

CONTRAST = 4.5
"""Contrast that the accessibility guidelines (WCAG, level AA) ask of text of ordinary size."""

MEASURED = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const part = (one) => (one /= 255) <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = rgba(getComputedStyle(one).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ink = rgba(element.closest("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(element))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["", f"#case/bad/{SLUGS[1]}"])
def test_all_texts_stand_out(opened: Open, everything: Path, scheme: str, place: str) -> None:
    shown = opened(everything, place, color_scheme=scheme)
    shown.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    measured = shown.page.evaluate(MEASURED)
    assert len(measured) > 100
    assert [one for one in measured if one[0] < CONTRAST] == []


def test_the_theme_is_the_systems_until_another_is_chosen(opened: Open, everything: Path) -> None:
    shown = opened(everything, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = shown.page.evaluate(background)
    shown.page.emulate_media(color_scheme="light")
    light = shown.page.evaluate(background)
    assert dark != light
    for name, colour in (("light", light), ("dark", dark), ("as the system", light)):
        shown.page.click("#theme")
        assert shown.page.evaluate(background) == colour
        assert shown.page.get_attribute("#theme", "aria-label") == f"Theme: {name}"
    shown.page.click("#theme")
    shown.page.click("#theme")
    shown.go()
    assert shown.page.evaluate(background) == dark


@pytest.mark.parametrize("name", ["everything", "hostile"])
def test_a_phone_scrolls_the_matrix_and_not_the_page(
    opened: Open, name: str, request: pytest.FixtureRequest
) -> None:
    size = {"width": 390, "height": 844}
    shown = opened(request.getfixturevalue(name), viewport=size, is_mobile=True, has_touch=True)
    shown.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert shown.page.evaluate("document.documentElement.scrollWidth") == 390
    shown.page.locator("#grid td button").first.tap()
    box = shown.page.locator("dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_rows_of_a_long_table_are_filtered_by_words(opened: Open, everything: Path) -> None:
    shown = opened(everything)
    mistakes = shown.page.locator("#mistakes details").last
    mistakes.locator("summary").click()
    box = mistakes.get_by_role("searchbox")
    rows, said = mistakes.locator("tbody tr:visible"), mistakes.locator("output")
    expect(rows).to_have_count(20)
    box.fill("layer_norm TRAINING")
    expect(rows).to_have_count(2)
    expect(said).to_have_text("2 of 20 rows")
    box.fill("")
    expect(rows).to_have_count(20)


BROKEN = """
(() => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  const broken = [];
  const headings = "h1,h2,h3,h4,h5,th,dt,legend,figcaption,.brand";
  for (const heading of document.querySelectorAll(headings)) {
    if (!heading.checkVisibility()) continue;
    const walker = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      for (const word of walker.currentNode.data.matchAll(/[^\\s-]+-?/g)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, word.index);
        range.setEnd(walker.currentNode, word.index + word[0].length);
        const tops = new Set([...range.getClientRects()].map((one) => Math.round(one.top)));
        if (tops.size > 1) broken.push(word[0]);
      }
    }
    const style = getComputedStyle(heading);
    if (heading.scrollWidth > heading.clientWidth + 1 && style.display !== "inline")
      broken.push(`${heading.textContent} is wider than its place`);
  }
  return broken;
})()
"""


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", ["everything", "caused"])
def test_no_heading_is_narrower_than_its_longest_word(
    opened: Open, name: str, width: int, request: pytest.FixtureRequest
) -> None:
    shown = opened(request.getfixturevalue(name), viewport={"width": width, "height": 900})
    assert shown.page.evaluate(BROKEN) == []
    assert shown.page.evaluate("document.documentElement.scrollWidth") == width
    narrow = "{ display: 'block', width: '2ch', minWidth: '0', overflowWrap: 'anywhere' }"
    shown.page.evaluate(f"Object.assign(document.querySelector('h2').style, {narrow})")
    assert shown.page.evaluate(BROKEN)


def test_paper_shows_all_rows_and_no_controls(opened: Open, everything: Path) -> None:
    shown = opened(everything)
    shown.page.emulate_media(media="print")
    assert shown.page.locator("#filters, #theme, .skip").locator("visible=true").count() == 0
    box = shown.page.evaluate(
        "(() => { const box = document.querySelector('.matrix');"
        " return [box.scrollHeight <= box.clientHeight, getComputedStyle(box).overflow]; })()"
    )
    assert box == [True, "visible"]
    assert shown.page.locator("summary ~ dl, summary ~ ul").first.is_visible()


def test_links_within_the_page_lead_somewhere(opened: Open, everything: Path) -> None:
    shown = opened(everything)
    lost = shown.page.evaluate(
        "[...document.querySelectorAll('a')].map((one) => one.getAttribute('href'))"
        ".filter((one) => !one.startsWith('#case/') && !document.getElementById(one.slice(1)))"
    )
    assert lost == []
    shown.go("#?chapter=masks")
    shown.page.locator(f"#choices a[href='#clause/{SLUGS[3]}']").click()
    row = shown.page.locator(f"tr[data-c='{SLUGS[3]}']")
    expect(row).to_be_visible()  # a filter does not stand in the way


def test_hostile_texts_are_shown_as_texts(opened: Open, hostile: Path) -> None:
    shown = opened(hostile)
    assert shown.page.locator("img").count() == 0
    assert shown.page.locator("script").count() == 2
    shown.page.locator("#grid td button").first.click()
    told = shown.page.locator("dialog").inner_text()
    plain = HOSTILE.replace("\u202e", "\\u202e").replace("\ud800", "\\ud800")
    assert plain * 100 in told
    assert len(told) > 100_000
    shown.page.keyboard.press("Escape")
    shown.page.fill("#f-text", "<script>")
    assert shown.visible() == list(SLUGS[:2])
    shown.page.locator("#findings a").first.click()
    expect(shown.page.locator("dialog")).to_be_visible()


def test_without_scripts_the_page_can_be_read(opened: Open, everything: Path) -> None:
    shown = opened(everything, java_script_enabled=False)
    assert shown.page.locator("#filters").is_hidden()
    assert shown.page.locator("tr[data-c]:visible").count() == len(SLUGS)
    assert "It differs by 0.5." in shown.page.locator("#findings").inner_text()


def test_six_backends_with_everything_stay_small_and_open(opened: Open, tmp_path: Path) -> None:
    names = [f"backend-{number}" for number in range(6)]
    paths = [
        written(tmp_path / "run.jsonl", *many(), slugs=list(clauses())),
        *(
            result(tmp_path / f"{name}.json", "comparison", comparison(names[0], name))
            for name in names[1:]
        ),
        result(tmp_path / "learning.json", "learning", learning(*names)),
        result(tmp_path / "cost.json", "cost", cost(*names)),
    ]
    page = tmp_path / "six.html"
    page.write_text(html.page(html.read(*paths)), encoding="utf-8")
    assert page.stat().st_size < 3_000_000
    shown = opened(page)
    timing = shown.page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
    assert timing["domComplete"] > 0
    if folder := os.environ.get("ATTENTEST_TIMING"):
        told = {"bytes": page.stat().st_size, "milliseconds": timing["loadEventEnd"]}
        Path(folder, "six.json").write_text(json.dumps(told))
