"""The pictures of mistakes: the same call on correct and on faulty code, with different results."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from folders import DOCS
from proof import share

from attentest.faults import faults
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest_spec.components import CHAPTERS
from attentest_spec.names import UnknownName

sys.path.append(str(DOCS / "_ext"))

from mistakes import SHOWN  # a module of docs/_ext
from views import Pair, View, answers, compare, fault_in  # a module of docs/_ext

ALL = [(slug, view) for chapter in SHOWN.values() for slug, view in chapter.items()]
IDS = [slug for slug, _ in ALL]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_shows_four_to_nine_of_its_mistakes(chapter: str) -> None:
    slugs = SHOWN[chapter]
    assert 4 <= len(slugs) <= 9
    assert {faults()[slug].chapter for slug in slugs} == {chapter}
    own = [faults()[slug].origin == "own" for slug in slugs]
    assert own == sorted(own), "those found in published code come first"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_pictures_of_a_chapter_are_linked_from_the_index(chapter: str) -> None:
    index = (DOCS / "contents.txt").read_text(encoding="utf-8")
    assert f"<generated/mistakes/{chapter}>\n" in index


@share(3)
@pytest.mark.parametrize(("slug", "view"), ALL, ids=IDS)
def test_picture_shows_the_mistake_only(slug: str, view: View) -> None:
    fault = fault_in(slug, view)
    correct = reference_backend(REFERENCE_MODELS[fault.models[0]], fault.choices)
    right, same = answers(fault, view, correct)
    np.testing.assert_allclose(same, right, rtol=1e-9, atol=1e-9)
    pair = compare(slug, view)
    np.testing.assert_array_equal(pair.right, right)
    assert view.kind.describe(pair, pair.right) != view.kind.describe(pair, pair.wrong)


def test_unknown_slug_fails() -> None:
    view = SHOWN["attention"]["attention.scale-missing"]
    with pytest.raises(UnknownName, match=r"attention\.scale-missing"):
        compare("attention.scale-mising", view)


def test_picture_without_a_difference_fails() -> None:
    view = SHOWN["attention"]["attention.scale-missing"]
    narrow = replace(view, look=lambda ask: view.look(ask) * 0.0)
    with pytest.raises(ValueError, match="is not visible"):
        compare("attention.scale-missing", narrow)


def test_picture_of_another_shape_fails() -> None:
    view = SHOWN["embedding"]["embedding.scale-missing"]
    one = replace(view, look=lambda ask: np.asarray(ask(np.array([[3]]))))
    with pytest.raises(ValueError, match=r"shape is \(1, 1, 6\), the wrong one \(6,\)"):
        compare("embedding.output-squeezed", one)


def test_description_lists_the_cells() -> None:
    reach = SHOWN["decoder"]["decoder.target-mask-ignored"].kind
    right, wrong = np.tril(np.ones((2, 2))), np.ones((2, 2))
    pair = Pair(right, wrong)
    described = [reach.describe(pair, one) for one in (right, wrong, 0 * right)]
    assert [text.removeprefix("each row depends on ") for text in described] == [
        "row 1: column 1; row 2: columns 1, 2",
        "row 1: columns 1, 2; row 2: columns 1, 2",
        "row 1: none; row 2: none",
    ]


def test_section_contains_the_texts_of_the_catalogue() -> None:
    section = pytest.importorskip("mistake_pages").section
    slug = "decoder.target-mask-ignored"
    text, fault = section(slug, SHOWN["decoder"][slug]), faults()[slug]
    assert fault.wrong.rstrip(".") in text
    assert fault.effect in text
    assert f"{{ref}}`{fault.clause} <{fault.clause}>`" in text
    assert f"attentest explain {slug}" in text
    labels = re.findall('role="img" aria-label="([^"]+)"', text)
    assert [label.partition(":")[0] for label in labels] == ["correct", "wrong"]
    assert "currentColor" in text  # readable on light and on dark pages
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_page_with_an_unknown_mistake_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    mistake_pages = pytest.importorskip("mistake_pages")
    view = SHOWN["attention"]["attention.scale-missing"]
    monkeypatch.setattr(mistake_pages, "SHOWN", {"attention": {"attention.scale-mising": view}})
    with pytest.raises(UnknownName, match=r"attention\.scale-missing"):
        mistake_pages.page("attention")


def test_picture_is_the_same_in_every_build() -> None:
    section = pytest.importorskip("mistake_pages").section
    slug = "attention.scale-missing"
    view = SHOWN["attention"][slug]
    assert section(slug, view) == section(slug, view)
