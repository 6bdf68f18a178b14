"""Assertions about the numbers of a layer."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from layer_cases import (
    case,
    straight,
    wrong_at,
)
from oracle_backend import claimed

from attentest.harness.errors import Absent, Violation
from attentest.testing import layer_calls
from attentest_spec import CHOICES
from attentest_spec.layer_norm import layer_norm
from attentest_spec.setting import Setting


@pytest.mark.parametrize("component", ["encoder_layer", "decoder_layer", "encoder", "decoder"])
@claimed()
def test_answer_of_the_reference_matches(component: str) -> None:
    one = case(component)
    assert (layer_calls.matches_reference(one) == one.probe.expected(*one.inputs).output).all()
    layer_calls.matches_reference(one, one.output())


def test_positions_hidden_from_all_are_not_compared() -> None:
    layer_calls.matches_reference(case(bend=wrong_at(1)))
    layer_calls.matches_reference(case(bend=wrong_at(2, np.nan)))
    for position in (0, 3):
        with pytest.raises(Violation, match=r"^The output differs"):
            layer_calls.matches_reference(case(bend=wrong_at(position)))
    with pytest.raises(Violation, match=r"^The sum differs"):
        layer_calls.matches_reference(case(), case().output() + 0.1, what="sum")


def test_two_answers_rows_agree() -> None:
    one = case()
    right, hidden, seen = (
        case(bend=bend).output() for bend in (straight, wrong_at(1), wrong_at(0))
    )
    layer_calls.rows_agree(one, hidden, right, what="order")
    layer_calls.rows_agree(one, right, hidden, what="order")
    for pair in ((seen, right), (right, seen)):
        with pytest.raises(Violation, match=r"^The order differs"):
            layer_calls.rows_agree(one, *pair, what="order")


def norms(part: Any) -> Mapping[str, Any]:
    return {"norm.gain": np.full(6, 1.5), "norm.bias": np.full(6, 0.25)}


@claimed()
def test_declared_option_is_shown() -> None:
    for option in ("post", "pre"):
        one = case(norm_placement=option)
        layer_calls.shows_one_option(one, one.output(), "norm_placement", {})
    for option in ("none", "present"):
        one = case("encoder", final_norm=option)
        layer_calls.shows_one_option(one, one.output(), "final_norm", norms(one))


def test_another_option_is_named() -> None:
    one, other = case(), case(norm_placement="pre")
    text = r"^norm_placement is post, and the numbers are those of pre\.$"
    with pytest.raises(Violation, match=text) as caught:
        layer_calls.shows_one_option(one, actual := other.output(), "norm_placement", {})
    assert caught.value.actual is actual
    plain = case("encoder")
    wrong = layer_norm(
        Setting(parameters={"gain": np.full(6, 1.5), "bias": np.full(6, 0.25)}), plain.output()
    )
    with pytest.raises(Violation, match="final_norm is none, and the numbers are those of present"):
        layer_calls.shows_one_option(plain, wrong, "final_norm", norms(plain))
    with pytest.raises(Violation, match=r"^The output differs"):
        layer_calls.shows_one_option(one, other.output() + 0.5, "norm_placement", {})


@claimed()
def test_options_with_the_same_numbers() -> None:
    one = case("encoder_layer", activation="relu", projection_bias="none")
    silent = layer_calls.zero_maps(one.probe.parameters, ["feed_forward.inner"])
    one.probe.load(silent)
    zero_at_zero = [one.name for one in CHOICES["activation"].options if one.name != "sigmoid"]
    others = " and ".join(zero_at_zero)
    text = f"activation is relu, and the numbers are those of {others}"
    with pytest.raises(Violation, match=text):
        layer_calls.shows_one_option(one, one.output(), "activation", {})
    half = case("encoder_layer", activation="relu", precision="float32")
    half.probe.load(silent)
    with pytest.raises(Absent, match=r"^float32 does not distinguish the options of activation$"):
        layer_calls.shows_one_option(half, half.output(), "activation", {})
    two = case("encoder_layer", norm_epsilon=0.0, precision="float32")
    with pytest.raises(Absent, match=r"the options of norm_epsilon_place$"):
        layer_calls.shows_one_option(two, two.output(), "norm_epsilon_place", {})
    one = case("encoder_layer", precision="float32")
    layer_calls.shows_one_option(one, one.output(), "norm_placement", {})
    other = case("encoder_layer", precision="float32", norm_placement="pre").output()
    with pytest.raises(Violation, match="the numbers are those of pre"):
        layer_calls.shows_one_option(one, other, "norm_placement", {})


def test_only_visible_positions_show_an_option() -> None:
    one = case(bend=wrong_at(1))
    layer_calls.shows_one_option(one, one.output(), "norm_placement", {})
