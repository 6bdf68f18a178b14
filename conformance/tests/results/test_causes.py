"""The causes of what fails: which verdicts stand together, and in which order."""

from dataclasses import replace

import pytest

from attentest.results.causes import causes, consequences, formulas, may_follow, shown
from attentest.results.verdict import Counterexample, LikelyCause, Location, Verdict

SCALE = LikelyCause(
    "fault", ("attention.scale-missing",), "the fault attention.scale-missing: No scale.", 0.0
)
PARTLY = LikelyCause("fault", ("attention.scale-twice",), "the fault x.y: Twice.", 0.0, missed=2)
SIMILAR = LikelyCause("complaint", ("model.width-rounded-down",), "the fault x.y: Rounded.")
LINE = Location("att.py", 14, "s = q @ k.mT", "scores", "q k / 2", "q k", confirmed=True)
ARRAYS = Counterexample(("build attention",), "print(1)\nprint(2)", "[1.]", "[2.]")


def broken(clause: str, *diagnosis: LikelyCause, backend: str = "mine", **rest: object) -> Verdict:
    """Return a violation with arrays."""
    values: dict[str, object] = {"counterexample": ARRAYS, "message": f"{clause} fails."} | rest
    return Verdict(backend, clause, "violation", diagnosis=diagnosis, **values)  # type: ignore[arg-type]


def groups(*verdicts: Verdict) -> list[tuple[str, ...]]:
    """Return the clauses of each cause."""
    return [one.clauses for one in causes(verdicts)]


def test_verdicts_with_one_likely_cause_are_one_cause_and_the_inner_formula_comes_first() -> None:
    found = causes(
        [
            broken("encoder.layer-formula", SCALE),
            broken("attention.cross-lengths", SCALE),
            broken("attention.formula", SCALE),
            Verdict("mine", "attention.shapes", "pass"),
        ]
    )
    (cause,) = found
    assert cause.clauses == (
        "attention.formula",
        "encoder.layer-formula",
        "attention.cross-lengths",
    )
    assert cause.exact
    assert cause.text == "No scale."


def test_a_known_mistake_that_leaves_the_formula_unexplained_comes_after_a_line() -> None:
    by_chance = LikelyCause("fault", ("encoder.padding-guessed",), "the fault x.y: Guessed.", 0.0)
    verdicts = [
        broken("encoder.layer-formula", backend="layer"),
        broken("encoder.padding-content", by_chance, backend="layer"),
        broken("attention.formula", location=LINE, backend="attention"),
    ]
    found = causes(verdicts)
    assert found[0].location == LINE
    assert all(may_follow(one, found) for one in found[1:])
    explained = causes([broken("encoder.layer-formula", by_chance, backend="layer"), *verdicts[1:]])
    assert not any(may_follow(one, explained) for one in explained)


def test_two_likely_causes_are_two_causes() -> None:
    other = LikelyCause("option", ("norm_placement=pre",), "pre", 0.0)
    assert len(groups(broken("attention.formula", SCALE), broken("encoder.formula", other))) == 2


def test_the_likely_cause_that_explains_most_verdicts_is_taken() -> None:
    other = LikelyCause("fault", ("attention.other",), "the fault attention.other: Other.", 0.0)
    found = causes([broken("attention.formula", other, SCALE), broken("attention.one-key", SCALE)])
    assert [one.text for one in found] == ["No scale."]


def test_a_line_takes_precedence_and_takes_along_what_has_the_same_likely_cause() -> None:
    located = broken("multi_head_attention.formula", SCALE, location=LINE)
    (cause,) = causes([broken("attention.formula", SCALE), located])
    assert (cause.file, cause.line, cause.confirmed) == ("att.py", 14, True)
    assert cause.text == "No scale."
    assert cause.words == "q k; expected q k / 2"
    (unknown,) = causes([broken("attention.formula", location=LINE)])
    assert unknown.text == unknown.words


def test_likely_cause_of_few_verdicts_at_a_line_is_not_that_of_the_line() -> None:
    slugs = ("attention.formula", "attention.one-key", "attention.shapes")
    (cause,) = causes(
        [
            *(broken(one, location=LINE) for one in slugs),
            broken("attention.cross-lengths", SCALE, location=LINE),
        ]
    )
    assert not cause.exact
    assert cause.text == cause.words


def test_likely_cause_of_the_most_telling_verdict_is_that_of_the_line() -> None:
    slugs = ("attention.one-key", "attention.shapes", "attention.cross-lengths")
    (cause,) = causes(
        [
            *(broken(one, location=LINE) for one in slugs),
            broken("attention.formula", SCALE, location=LINE),
        ]
    )
    assert cause.text == "No scale."


def test_two_lines_are_two_causes_though_one_mistake_is_likely() -> None:
    second = Location("att.py", 30, "", "scores", "q k / 2", "q k")
    found = causes(
        [
            broken("encoder.layer-formula", SCALE, location=second),
            broken("attention.formula", SCALE, location=LINE),
        ]
    )
    assert [one.line for one in found] == [14, 30]  # the confirmed one first


def test_one_mistake_of_a_component_is_at_its_confirmed_line() -> None:
    """Some example shows it at another line, which nothing confirms."""
    before = Location("att.py", 13, "s = q @ k.mT", "product", "q k", "")
    again = Location("att.py", 30, "s = q @ k.mT", "scores", "q k / 2", "q k", confirmed=True)
    whole = broken("attention.formula", SCALE, location=LINE)
    assert len(groups(whole, broken("attention.shapes", SCALE, location=before))) == 1
    assert len(groups(whole, broken("attention.shapes", SCALE, location=again))) == 2
    assert len(groups(whole, broken("attention.shapes", location=before))) == 2
    model = [broken("model.formula", SCALE, location=replace(LINE, confirmed=False))]
    model.append(broken("model.shapes", SCALE, location=before))
    assert len(groups(*model)) == 2
    assert len(groups(whole, *model)) == 1


def test_unexplained_outputs_belong_to_the_formula_that_fails_unexplained() -> None:
    refused = broken("multi_head_attention.indivisible-width-refused", counterexample=None)
    assert groups(
        broken("multi_head_attention.formula"),
        broken("multi_head_attention.mask-per-head", PARTLY),
        broken("encoder.layer-formula"),
        refused,
    ) == [
        (
            "multi_head_attention.formula",
            "encoder.layer-formula",
            "multi_head_attention.mask-per-head",
        ),
        ("multi_head_attention.indivisible-width-refused",),
    ]


def test_an_unexplained_failure_is_apart_from_a_formula_with_a_known_cause() -> None:
    assert groups(broken("attention.formula", SCALE), broken("attention.key-order")) == [
        ("attention.formula",),
        ("attention.key-order",),
    ]


def test_failure_without_an_output_does_not_belong_to_a_formula() -> None:
    saved = broken("encoder.input-untouched", counterexample=None, message="The key changed.")
    assert len(groups(broken("encoder.formula"), saved)) == 2


def test_failures_without_an_output_that_have_one_reason_are_one_cause() -> None:
    """The words on two lengths differ in their numbers alone."""
    words = "The encoding separates the last of {} positions by 0.07."
    slugs = ("shapes", "input-untouched", "every-length-served")
    failures = [
        broken(f"positional_encoding.{slug}", counterexample=None, message=words.format(number))
        for number, slug in enumerate(slugs, 2)
    ]
    assert len(groups(*failures)) == 1
    other = broken("positional_encoding.not-saved", counterexample=None, message="It is cut.")
    assert len(groups(*failures, other)) == 2


def test_errors_with_one_reason_are_one_cause_whatever_was_done() -> None:
    missing = "The parameter map has no entry for"
    errors = [
        Verdict("mine", slug, "error", f"{doing} raised KeyError: \"{missing} '{name}'.\"")
        for slug, doing, name in (
            ("model.formula", "loading the parameters of model", "generator.bias"),
            ("generator.formula", "exporting the parameters", "bias"),
            ("generator.shapes", "exporting the parameters", "weight"),
        )
    ]
    assert groups(*errors) == [("generator.formula", "model.formula"), ("generator.shapes",)]


def test_clauses_not_tried_are_one_cause_and_warnings_come_last() -> None:
    verdicts = [
        Verdict("mine", "attention.one-key", "warning", "Falls short."),
        Verdict("mine", "attention.formula", "timeout", "not tried after 3 timeouts"),
        Verdict("mine", "attention.shapes", "timeout", "not tried after 3 timeouts"),
    ]
    found = causes(verdicts)
    assert [one.severity for one in found] == ["timeout", "warning"]
    assert len(found[0].clauses) == 2


def test_crashes_come_after_what_was_compared() -> None:
    verdicts = [
        Verdict("mine", slug, "crash", "not tried after 3 timeouts or crashes")
        for slug in ("attention.shapes", "attention.rows-sum-to-one")
    ]
    found = causes([*verdicts, broken("attention.formula")])
    assert [one.severity for one in found] == ["violation", "crash"]


def test_components_of_one_file_share_a_likely_cause_but_no_unknown_one() -> None:
    same = causes(
        [
            broken("attention.formula", SCALE, backend="f.py:attention"),
            broken("encoder.layer-formula", SCALE, backend="f.py:Layer"),
        ]
    )
    assert len(same) == 1
    apart = causes(
        [
            broken("attention.formula", backend="f.py:attention"),
            broken("encoder.layer-formula", backend="f.py:Layer"),
        ]
    )
    assert len(apart) == 2


def test_consequences_name_the_inner_clause() -> None:
    assert consequences(
        [
            broken("attention.formula", SCALE),
            broken("multi_head_attention.projection-bias", SCALE),
            broken("encoder.input-untouched", counterexample=None),
        ]
    ) == {"multi_head_attention.projection-bias": "attention.formula"}


def test_a_similar_message_is_shown_of_a_refusal_alone() -> None:
    refusal = broken("model.impossible-sizes-refused", SIMILAR, counterexample=None)
    assert shown(refusal) == (SIMILAR,)
    assert shown(broken("attention.formula", SIMILAR)) == ()
    assert shown(broken("attention.every-input-counts", SIMILAR, counterexample=None)) == ()
    assert shown(Verdict("mine", "model.formula", "error", diagnosis=(SCALE,))) == ()


def test_a_similar_message_is_no_cause() -> None:
    refusal = broken("model.impossible-sizes-refused", SIMILAR, counterexample=None)
    other = broken("model.too-long-input", SIMILAR, counterexample=None)
    assert len(groups(refusal, other)) == 2


def test_a_clause_of_another_specification_stands_alone() -> None:
    unknown = broken("attention.not-a-clause", SCALE)
    assert groups(broken("attention.formula", SCALE), unknown) == [
        ("attention.formula",),
        ("attention.not-a-clause",),
    ]
    assert consequences([unknown]) == {}


@pytest.mark.parametrize(
    ("component", "slug"),
    [("attention", "attention.formula"), ("encoder_layer", "encoder.layer-formula")],
)
def test_the_formula_of_a_component_is_its_first_clause_on_values(
    component: str, slug: str
) -> None:
    assert formulas()[component] == slug


def test_the_line_of_a_part_comes_before_that_of_what_holds_it() -> None:
    """The mistake of a part shows at another line of a layer whose inputs are one."""
    use = Location("att.py", 16, "s = q @ k.mT", "product", "q k", "q q", confirmed=True)
    names = ("layer-formula", "shapes", "batch-independence")
    layer = [broken(f"encoder.{one}", location=use) for one in names]
    found = groups(*layer, broken("multi_head_attention.formula", location=LINE))
    assert found[0] == ("multi_head_attention.formula",)


def test_the_one_mistake_of_a_model_is_the_confirmed_line_of_its_part() -> None:
    """A whole model has one mistake, whose line may be the next one: the part says it better."""
    whole = Location("att.py", 15, "y = w @ v", "heads", "", "heads that are merged wrongly")
    part = broken("multi_head_attention.formula", SCALE, location=LINE)
    model = broken("language_model.formula", SCALE, location=whole)
    assert len(groups(part, model, broken("multi_head_attention.half-precision", SCALE))) == 1
    (cause,) = causes([model, part])
    assert cause.line == LINE.line
    other = broken("feed_forward.formula", location=Location("att.py", 40, "", "a", "b", "c", True))
    assert len(groups(model, part, other)) == 3
    assert len(groups(model)) == 1
    assert causes([model])[0].words == "heads that are merged wrongly"
