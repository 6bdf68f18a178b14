"""The clauses: errors of the parser, and the consistency of the chapters."""

import re
from collections import Counter

import pytest

from attentest_spec import clauses as parser
from attentest_spec.choices import CHOICES, Choice
from attentest_spec.clauses import Clause, chapter_text, clauses, parse
from attentest_spec.components import CHAPTERS, COMPONENTS

FIELDS = """
- component: attention
- depth: behaviour
- kind: values
- reason: it goes wrong
  on two lines
- source: section 3
- since: 0.1
"""


def written(
    heading: str = "attention.one",
    text: str = "It MUST hold.",
    fields: str = FIELDS,
) -> str:
    return (
        f"# A chapter\n\nProse with MUST in it.\n\n## Clauses\n\n### {heading}\n\n{text}\n{fields}"
    )


def problem(**parts: str) -> str:
    """Return what the parser says of a clause that is not well formed."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - each test looks at the text
        parse(written(**parts), "attention")
    return str(caught.value)


def test_a_clause_is_read_whole() -> None:
    fields = FIELDS + "- choice: mask_fill\n- needs: gradient, mode\n"
    [clause] = parse(written(text="It MUST hold\nhere.", fields=fields), "attention")
    assert clause == Clause(
        slug="attention.one",
        text="It MUST hold here.",
        level="MUST",
        component="attention",
        depth="behaviour",
        kind="values",
        reason="it goes wrong on two lines",
        source="section 3",
        since="0.1",
        choice="mask_fill",
        needs=("gradient", "mode"),
    )
    assert clause.chapter == "attention"


def test_clauses_keep_their_order_and_their_own_fields() -> None:
    second = FIELDS.replace("section 3", "section 5")
    text = written() + "\n### attention.two\n\nIt SHOULD hold.\n" + second
    found = parse(text, "attention")
    assert [clause.slug for clause in found] == ["attention.one", "attention.two"]
    assert [clause.source for clause in found] == ["section 3", "section 5"]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("It MUST hold.", "MUST"),
        ("It SHOULD hold.", "SHOULD"),
        ("It SHOULD hold, and MUST not raise.", "MUST"),
    ],
)
def test_the_strongest_word_is_the_level(text: str, level: str) -> None:
    assert parse(written(text=text), "attention")[0].level == level


@pytest.mark.parametrize("text", ["It must hold.", "It MUSTER holds.", ""])
def test_a_text_without_a_level_is_refused(text: str) -> None:
    assert "no MUST or SHOULD" in problem(text=text)


@pytest.mark.parametrize("name", ["component", "depth", "kind", "reason", "source", "since"])
def test_a_missing_field_is_named(name: str) -> None:
    fields = re.sub(rf"^- {name}: .*\n(  .*\n)*", "", FIELDS, flags=re.MULTILINE)
    assert f"no field {name}" in problem(fields=fields)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("- colour: red", "unknown field colour"),
        ("- choice: hue", "choice hue is not known"),
        ("- needs: gradient, luck", "need luck is not known"),
        ("- since: 0.2", "field since twice"),
    ],
)
def test_a_wrong_field_is_named(line: str, said: str) -> None:
    assert said in problem(fields=f"{FIELDS}{line}\n")


@pytest.mark.parametrize(
    ("field", "value"), [("component", "atention"), ("depth", "deep"), ("kind", "kindly")]
)
def test_an_unknown_value_is_named(field: str, value: str) -> None:
    fields = re.sub(rf"^- {field}: .*$", f"- {field}: {value}", FIELDS, flags=re.MULTILINE)
    assert f"{field} {value} is not known" in problem(fields=fields)


def test_a_slug_of_another_chapter_is_refused() -> None:
    assert "its chapter, attention" in problem(heading="masks.one")


@pytest.mark.parametrize(
    "heading", ["attention.One", "attention", "attention one", "Attention.one"]
)
def test_a_heading_that_is_no_slug_is_refused(heading: str) -> None:
    assert heading in problem(heading=heading)


def test_all_problems_are_reported_at_once() -> None:
    said = problem(text="It holds.", fields="\n- depth: deep\n")
    for part in ("attention.one", "no field reason", "depth deep is not known", "no MUST"):
        assert part in said


def test_a_slug_that_is_written_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "CHAPTERS", ("attention",))
    monkeypatch.setattr(parser, "chapter_text", lambda chapter: written() + written())
    with pytest.raises(ValueError, match=r"attention\.one is written twice"):
        parser.clauses.__wrapped__()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_has_its_parts(chapter: str) -> None:
    text = chapter_text(chapter)
    assert text.startswith("# ")
    for part in ("\n**Call.**", "\n**By hand.**", "\n## Clauses\n"):
        assert text.count(part) == 1, part
    assert text.index("\n## Clauses\n") < text.index(f"\n### {chapter}.")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_clause_speaks_of_a_component_of_its_chapter(chapter: str) -> None:
    found = parse(chapter_text(chapter), chapter)
    assert found
    # The first numbers are those of the model: initialisation is no component of its own.
    expected = {"initialisation": "model"}.get(chapter, chapter)
    assert {COMPONENTS[clause.component].chapter for clause in found} == {expected}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_text_is_one_sentence_with_a_reason_of_its_own(chapter: str) -> None:
    found = parse(chapter_text(chapter), chapter)
    for clause in found:
        assert re.fullmatch(r"[A-Z].*\.", clause.text), clause.slug
        assert not re.search(r"\. [A-Z]", clause.text), clause.slug
        assert clause.reason.endswith("."), clause.slug
    assert Counter(clause.reason for clause in found).most_common(1)[0][1] == 1


def test_every_component_has_a_clause() -> None:
    assert {clause.component for clause in clauses().values()} == set(COMPONENTS)


@pytest.mark.parametrize("choice", CHOICES.values(), ids=lambda choice: choice.name)
def test_a_choice_and_its_clause_name_each_other(choice: Choice) -> None:
    judges = [clause.slug for clause in clauses().values() if clause.choice == choice.name]
    assert judges == [choice.clause]


def test_clauses_that_refuse_are_those_about_errors() -> None:
    every = clauses().values()
    about = {one.slug for one in every if one.kind == "errors"}
    assert about == {one.slug for one in every if re.search(r"\brefuse", one.text)}


def test_how_a_refusal_is_worded_is_a_clause_of_its_own() -> None:
    every = clauses()
    worded = {one.slug for one in every.values() if re.search(r"\ban error that\b", one.text)}
    worded |= {one.slug for one in every.values() if one.text.startswith("The error")}
    assert worded == {slug for slug in every if slug.endswith("-named")}
    for slug in worded:
        assert re.match("The error that refuses .* SHOULD ", every[slug].text), slug
        refused = slug.removesuffix("-named")
        assert refused in every or f"{refused}-refused" in every, slug


def test_every_component_has_a_clause_about_values() -> None:
    every = clauses().values()
    assert {one.component for one in every if one.kind == "values"} == set(COMPONENTS)


def test_one_clause_is_judged_on_whatever_is_provided() -> None:
    assert [one.slug for one in clauses().values() if one.anywhere] == [
        "model.global-state-untouched"
    ]
