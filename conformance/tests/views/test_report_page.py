"""The page as text: one file, strict, hostile texts harmless, the same every time."""

import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from report_cases import (
    HOSTILE,
    SLUGS,
    all_of,
    comparison,
    cost,
    index,
    judged,
    learning,
    many,
    mixed,
    result,
    sweep,
    written,
)

from attentest.results.expected_failures import ExpectedFailure
from attentest.results.files import Unreadable
from attentest.views import html
from attentest_spec.clauses import clauses


class Parsed(HTMLParser):
    """Content of a page: tags with their attributes, and the text in each kind of tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.tags[-1][0] if self.tags else "", []).append(data)

    def all(self, name: str) -> list[str]:
        return [value for _, given in self.tags if (value := given.get(name)) is not None]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with every section."""
    tmp_path = tmp_path_factory.mktemp("everything")
    return html.page(
        html.read(
            written(tmp_path / "old.jsonl", judged("good", all_of("pass"))),
            written(tmp_path / "new.jsonl", *mixed()),
            result(tmp_path / "comparison.json", "comparison", comparison()),
            result(tmp_path / "learning.json", "learning", learning("good", "bad")),
            result(tmp_path / "cost.json", "cost", cost("good", "bad")),
            result(tmp_path / "sweep.json", "sweep", sweep()),
            result(tmp_path / "index.json", "index", index()),
        )
    )


@pytest.mark.proof
def test_every_section_is_there_under_its_heading(everything: str) -> None:
    ids = Counter(Parsed(everything).all("id"))
    sections = ("summary", "changes", "matrix", "findings", "choices", "differences", "pictures")
    assert set(ids) >= {*sections, "cost", "learning", "sweeps", "mistakes"}
    assert set(ids.values()) == {1}
    levels = [int(tag[1]) for tag, _ in Parsed(everything).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_a_section_without_its_file_is_left_out(tmp_path: Path) -> None:
    page = html.page(html.read(result(tmp_path / "c.json", "comparison", comparison())))
    ids = Parsed(page).all("id")
    assert "differences" in ids
    assert not {"summary", "matrix", "learning", "changes", "data"} & set(ids)


def test_a_page_of_trainings_alone_says_so(tmp_path: Path) -> None:
    page = html.page(
        html.read(
            result(tmp_path / "s.json", "sweep", sweep()),
            result(tmp_path / "i.json", "index", index("<b>No</b> scale.")),
        )
    )
    assert "What do the trainings show?" in page
    assert "Of 20 injected mistakes the curve of the training loss shows 10 (50%)" in page
    assert "&lt;b&gt;No&lt;/b&gt; scale." in page
    assert page.count('<p class="control rows" hidden>') == 2  # trainings and mistakes


def test_links_within_the_page_lead_somewhere(everything: str) -> None:
    parsed = Parsed(everything)
    links = [link for link in parsed.all("href") if not link.startswith("#case/")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not {link[1:] for link in links} - set(parsed.all("id"))


def test_the_policy_lets_in_its_own_style_and_script_alone(everything: str) -> None:
    policy = next(
        str(given["content"])
        for _, given in Parsed(everything).tags
        if given.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", everything, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_nothing_is_loaded_or_styled_in_place(everything: str) -> None:
    parsed = Parsed(everything)
    assert not parsed.all("style")
    assert not parsed.all("src")
    assert not [name for _, given in parsed.tags for name in given if name.startswith("on")]
    assert not re.findall(r"https?://(?!www\.w3\.org/)", everything)


def test_a_summary_tells_its_denominators(everything: str) -> None:
    told = re.sub("<[^>]+>", "", everything)
    assert "4 of 4 judged clauses conform, of 4 in all" in told
    assert "1 of 3 judged clauses conform, of 4 in all" in told
    assert "not loaded" in told
    assert "There is no file away." in told


@pytest.mark.proof
def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    told = comparison(HOSTILE, "good")
    told["explanations"][0]["parting"]["step"] = HOSTILE
    hostile = judged("<b>", all_of("violation"), message=HOSTILE * 900)
    told["notes"] = [HOSTILE]
    page = html.page(
        html.read(
            written(tmp_path / "a.jsonl", hostile),
            result(tmp_path / "c.json", "comparison", told),
            result(tmp_path / "l.json", "learning", learning(HOSTILE, "_x")),
            result(tmp_path / "k.json", "cost", cost(HOSTILE, "_x")),
        )
    )
    page.encode()  # no lone surrogate is left
    assert "\u202e" not in page
    parsed = Parsed(page)
    assert "img" not in {tag for tag, _ in parsed.tags}
    assert len([tag for tag, _ in parsed.tags if tag == "script"]) == 2
    (data,) = re.findall('id="data">(.*?)</script>', page, re.DOTALL)
    assert not set("<>") & set(data)
    (case,) = [one[SLUGS[0]] for one in json.loads(data)["cases"]]
    assert case["message"].startswith('"><img src=x onerror=alert(1)><script>')


@pytest.mark.proof
def test_the_same_material_gives_the_same_page(tmp_path: Path) -> None:
    files = (
        written(tmp_path / "a.jsonl", *mixed()),
        result(tmp_path / "l.json", "learning", learning("good")),
    )
    assert html.page(html.read(*files)) == html.page(html.read(*files))


def test_expected_failure_is_marked(tmp_path: Path) -> None:
    known = ExpectedFailure(
        clause=SLUGS[1], owner="Ada", reason="it waits", link="#7", message="differs by 0.5"
    )
    page = html.page(html.read(written(tmp_path / "a.jsonl", *mixed())).declaring([known]))
    assert "1 expected to fail" in page
    assert "known: it waits (Ada, #7)" in page


def test_figures_show_names_letter_by_letter(tmp_path: Path) -> None:
    path = result(tmp_path / "l.json", "learning", learning("a$b_$", "_c"))
    text = html.page(html.read(path))
    figures = re.findall(r'<svg [^>]*class="figure(?: wide)?".*?</svg>', text, re.DOTALL)
    assert figures
    assert all(">a$b_$<" in one and "> _c<" in one for one in figures)


def test_figures_have_ids_of_their_own_and_the_ink_of_the_page(everything: str) -> None:
    figures = re.findall(r'<svg [^>]*class="figure(?: wide)?".*?</svg>', everything, re.DOTALL)
    assert len(figures) == 7
    assert all('stroke="currentColor"' in one and "font-size" in one for one in figures)
    for one in figures:
        used = re.findall(r'(?:url\(#|href="#)([^")]+)', one)
        assert used
        assert set(used) <= set(re.findall(r'id="([^"]+)"', one))


def test_runs_side_by_side_are_columns_and_a_backend_comes_once(tmp_path: Path) -> None:
    one = written(tmp_path / "one.jsonl", judged("one", all_of("pass")))
    two = written(tmp_path / "two.jsonl", judged("two", all_of("pass", SLUGS[:2])), slugs=SLUGS[:2])
    material = html.read(one, two, side_by_side=True)
    assert material.changes is None
    assert [column for run in material.runs for column in run.targets] == ["one", "two"]
    page = html.page(material)
    assert page.count('<td data-b="1"></td>') == 2  # what was not asked of the second
    with pytest.raises(Unreadable, match=r"in both one.jsonl and one.jsonl"):
        html.read(one, one, two)


def test_a_result_that_lacks_what_it_should_hold_is_refused(tmp_path: Path) -> None:
    told = comparison()
    del told["explanations"][0]["parting"]
    path = result(tmp_path / "c.json", "comparison", told)
    with pytest.raises(Unreadable, match=r"c.json cannot be shown: .*parting"):
        html.page(html.read(path))


def test_other_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"type": "trace", "format": 1}')
    with pytest.raises(Unreadable, match="its type is 'trace'"):
        html.read(tmp_path / "x.json")
    with pytest.raises(Unreadable, match="cannot be read"):
        html.read(tmp_path / "none")


@pytest.mark.proof
def test_six_backends_stay_small(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *many(), slugs=list(clauses()))
    assert len(html.page(html.read(path)).encode()) < 3_000_000


@pytest.mark.parametrize(("slugs", "words"), [(SLUGS[:1], "1 violates"), (SLUGS, "violate<")])
def test_counted_verdicts_agree_in_number(tmp_path: Path, slugs: list[str], words: str) -> None:
    path = written(tmp_path / "a.jsonl", judged("bad", all_of("violation", slugs)), slugs=slugs)
    badges = html.page(html.read(path)).partition('class="badges"')[2].partition("</ul>")[0]
    assert words in badges


def test_the_total_of_clauses_is_that_of_the_terminal(tmp_path: Path) -> None:
    slugs = ("masks.any-pad-id", "attention.formula", "rotary.formula")
    statuses = {
        "masks.any-pad-id": "pass",
        "attention.formula": "absent",
        "rotary.formula": "absent",
    }
    backend = judged("good", statuses)
    partial = replace(backend, description=replace(backend.description, components=("masks",)))
    page = html.page(html.read(written(tmp_path / "a.jsonl", partial, slugs=slugs)))
    assert "1 of 1 judged clauses conform, of 3 in all" in re.sub("<[^>]+>", "", page)


@pytest.mark.parametrize(("status", "broken"), [("warning", 0), ("violation", 1)])
def test_warnings_alone_leave_a_card_unbroken(tmp_path: Path, status: str, broken: int) -> None:
    run = written(
        tmp_path / "run.jsonl", judged("own", all_of(status)), judged("good", all_of("pass"))
    )
    shown = Parsed(html.page(html.read(run)))
    assert shown.all("class").count("card broken") == broken
