"""The choices: the table and the fields agree, and unknown options are refused."""

from dataclasses import FrozenInstanceError, fields

import pytest

from attentest_spec.choices import CHOICES, PAPER, Choice, Choices, Value
from attentest_spec.components import CHAPTERS
from attentest_spec.names import UnknownName

ALL = pytest.mark.parametrize("choice", CHOICES.values(), ids=lambda choice: choice.name)


def test_fields_are_the_table_in_its_order() -> None:
    assert [field.name for field in fields(Choices)] == list(CHOICES)
    assert list(PAPER.as_dict()) == list(CHOICES)


@ALL
def test_the_default_is_the_first_option(choice: Choice) -> None:
    assert PAPER[choice.name] == choice.first


@ALL
def test_option_of_the_paper_is_the_first(choice: Choice) -> None:
    assert choice.paper in (None, choice.first)


@ALL
def test_a_choice_is_explained(choice: Choice) -> None:
    assert choice.question.endswith("?")
    assert choice.why
    assert choice.source
    assert choice.clause.partition(".")[0] in CHAPTERS
    assert choice.options or choice.number
    assert len({option.name for option in choice.options}) == len(choice.options)


@ALL
def test_every_option_can_be_chosen(choice: Choice) -> None:
    for option in choice.options:
        assert PAPER.but(**{choice.name: option.name})[choice.name] == option.name


def test_numbers_can_stand_for_themselves() -> None:
    assert PAPER.but(norm_epsilon=0).norm_epsilon == 0.0
    assert PAPER.but(position_offset=2).position_offset == 2.0
    filled = PAPER.but(mask_fill=-10_000)
    assert filled.mask_fill == -1e4
    assert isinstance(filled.mask_fill, float)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "norm_placement",
            "sideways",
            r"norm_placement cannot be 'sideways'; it is one of: post, pre\.$",
        ),
        ("norm_placement", 3, "norm_placement cannot be 3"),
        ("norm_epsilon", -1e-5, "norm_epsilon must be at least 0, and -1e-05 is not"),
        ("norm_epsilon", float("nan"), "norm_epsilon must be a finite number.*nan"),
        ("norm_epsilon", True, "norm_epsilon cannot be True.*a number of at least 0"),
        ("norm_epsilon", "1e-5", "norm_epsilon cannot be '1e-5'"),
        ("mask_fill", float("-inf"), "mask_fill must be a finite number.*-inf"),
        ("mask_fill", 1e9, "mask_fill must be negative, and 1000000000.0 is not"),
        ("mask_fill", 0.0, "mask_fill must be negative, and 0.0 is not"),
        ("mask_fill", 0.5, "mask_fill must be negative, and 0.5 is not"),
        ("position_offset", 0, "position_offset must be a whole number above 0; 0 is not"),
        ("position_offset", -1, "position_offset must be a whole number above 0; -1 is not"),
        ("position_offset", 1.5, r"position_offset must be a whole number above 0; 1\.5 is not"),
        ("mask_fill", "minus", "mask_fill cannot be 'minus'.*exact, a negative number"),
    ],
)
def test_unknown_option_is_refused(name: str, value: Value, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Choices.of({name: value})


def test_an_unknown_choice_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        UnknownName, match="no choice named 'norm_place'; did you mean norm_placement"
    ):
        Choices.of({"norm_place": "post"})
    with pytest.raises(UnknownName, match="no choice named 'colour'"):
        PAPER["colour"]


def test_undeclared_choice_is_the_option_of_the_paper() -> None:
    assert Choices.of({}) == PAPER
    assert Choices.of({"output": "logits"}) == PAPER.but(output="logits")


def test_choices_cannot_be_changed_behind_their_check() -> None:
    with pytest.raises(FrozenInstanceError):
        PAPER.output = "logits"  # type: ignore[misc]


def test_completed_choices_are_the_same_object_and_each_value_is_checked():
    assert Choices.of({"norm_epsilon": 1.0}) is Choices.of({"norm_epsilon": 1.0})
    with pytest.raises(ValueError, match="norm_epsilon"):
        Choices.of({"norm_epsilon": True})  # which equals 1.0
    with pytest.raises(ValueError, match="norm_epsilon"):
        Choices.of({"norm_epsilon": [1.0]})
