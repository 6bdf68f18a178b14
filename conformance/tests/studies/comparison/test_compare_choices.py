"""Every choice of the spec, new ones too, can be compared and explains what it changes."""

from itertools import combinations

import numpy as np
import pytest
from compared import ONE_LAYER, believed, choices_in
from proof import share

from attentest.harness.oracle import Reference
from attentest.studies.comparison import BOUND, EQUAL, EXPLAINED
from attentest.studies.comparison.inputs import weights
from attentest_spec import CHOICES, PAPER, Choices
from attentest_spec.clauses import clauses
from attentest_spec.components import inside
from attentest_spec.parameters import shapes

NUMBERS = {"norm_epsilon": 1e-3, "mask_fill": -1e4}
BARE = Choices(tying="none", output="logits")
MODEL = [
    name
    for name, one in CHOICES.items()
    if clauses()[one.clause].component in inside("model")
    and not one.clause.startswith("initialisation.")  # weights are given
]
"""The choices of a model; training and decoding are compared by their own components."""


def values(name: str) -> list:
    choice = CHOICES[name]
    number = [NUMBERS.get(name, 2.0)] if choice.number else []
    return [*(one.name for one in choice.options), *number]


FLIPS = [(name, value) for name in MODEL for value in values(name) if value != BARE[name]]
SILENT = {
    *("mask_fill", "fully_masked_row", "key_heads"),
    *("query_alignment", "query_key_norm_place"),
    *(name for name in CHOICES if name.startswith("rms_")),
}
"""Choices that do not show where every query may attend to something, scores are small, and the
sizes have as many heads of keys as of queries; where nothing inside attention has an order, nothing
is both normalised and turned, and all norms are layer norms.
"""


@share(5)
@pytest.mark.parametrize(("name", "value"), FLIPS)
def test_a_flipped_choice_is_all_that_explains(name, value):
    found = believed(Reference(BARE), Reference(BARE.but(**{name: value}), "other"))
    (one,) = found.explanations
    assert found.explained
    if name in SILENT:
        assert one.status == EQUAL
        assert [flip.choice for flip in one.silent] == [name]
    else:
        assert one.status == EXPLAINED
        assert choices_in(one) == {name}
        assert one.left == 0.0


def drawn_choices(seed: int) -> Choices:
    rng = np.random.default_rng(seed)
    return Choices(**{name: values(name)[rng.integers(len(values(name)))] for name in MODEL})


@share(12)
@pytest.mark.parametrize("seed", range(12))
def test_many_choices_at_once_are_explained_with_no_one_too_many(seed):
    one, other = drawn_choices(2 * seed), drawn_choices(2 * seed + 1)
    found = believed(Reference(one), Reference(other, "other"))
    (explanation,) = found.explanations
    assert explanation.status == EXPLAINED, (one, other)
    flips = choices_in(explanation)
    assert len(flips) >= 3
    assert flips | {flip.choice for flip in explanation.silent} == {
        name for name in CHOICES if one[name] != other[name]
    }
    # What is smaller cannot be distinguished from that; norms of queries and keys are RMS norms.
    rounds = "float32" in (other.softmax_arithmetic, other.rms_arithmetic)
    assert explanation.left <= (1e-6 if rounds else BOUND)


@pytest.mark.parametrize(("name", "value"), FLIPS)
def test_a_weight_is_the_same_under_all_choices_that_give_it_one_shape(name, value):
    flipped = BARE.but(**{name: value})
    mine, others = (weights(ONE_LAYER, "model", one) for one in (BARE, flipped))
    assert {k: v.shape for k, v in others.items()} == shapes("model", ONE_LAYER.sizes, flipped)
    if name in ("tying", "norm_sharing"):  # there a weight is another one
        return
    for key in mine.keys() & others.keys():
        if mine[key].shape == others[key].shape:
            np.testing.assert_array_equal(mine[key], others[key])


def test_no_two_weights_are_the_same():
    held = weights(ONE_LAYER, "model", BARE)
    alike = [
        pair
        for pair in combinations(held, 2)
        if held[pair[0]].shape == held[pair[1]].shape
        and np.array_equal(held[pair[0]], held[pair[1]])
    ]
    assert not alike


def test_the_paper_is_compared_with_itself():
    (one,) = believed(Reference(PAPER), Reference(PAPER, "other")).explanations
    assert one.status == EQUAL
