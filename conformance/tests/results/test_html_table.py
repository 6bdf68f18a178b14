"""HTML tables for notebooks: well-formed, with all text escaped."""

from xml.etree import ElementTree

import pytest

from attentest.results.html_table import paragraph, table


def cells(html: str, kind: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(html).iter(kind)]


def test_headings_and_rows_stand_in_a_table():
    html = table(["name", "apart"], [["a", 1.5], ["b", None]])
    assert cells(html, "th") == ["name", "apart"]
    assert cells(html, "td") == ["a", "1.5", "b", ""]


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", '"><img onerror=x>', "</td></table>", "&amp;"]
)
def test_hostile_text_is_escaped(hostile):
    html = table([hostile], [[hostile]])
    assert cells(html, "th") == cells(html, "td") == [hostile]
    assert ElementTree.fromstring(paragraph(hostile)).text == hostile


@pytest.mark.parametrize("odd", ["\ud800", "\x00", "\x1b[31m", "\u202e"])
def test_control_characters_are_made_visible(odd):
    html = table(["x"], [[odd]])
    html.encode()
    assert odd not in html


def test_a_row_of_another_width_is_refused():
    with pytest.raises(ValueError, match="1 cells stands under 2"):
        table(["a", "b"], [["only one"]])
