"""The positions of a whole model that are added on one side alone."""

import pytest
from proof import share

from attentest.analysis.diagnosis.variants import Variant
from attentest.analysis.encoded import (
    choices_beside_positions,
    choices_of_encoder,
    positions_of_one_side,
)
from attentest.faults import faults
from attentest_spec import Choices

DECLARED = {"output": "logits", "embedding_scale": "none"}
OPTION = {"positional_encoding": "halves", "embedding_scale": "none"}


@pytest.mark.parametrize("side", ["source", "target"])
def test_positions_of_one_side_are_found(side):
    fault = faults()[f"model.positions-on-{side}-alone"]
    backend = Variant({}, (fault,), Choices.of({**DECLARED, **OPTION})).backend()
    assert (
        positions_of_one_side(backend, {"output": "logits", "positional_encoding": "none"})
        == OPTION
    )


@pytest.mark.parametrize("positions", ["none", "halves", "interleaved"])
def test_positions_of_both_sides_or_of_none_are_no_mistake(positions):
    declared = {**DECLARED, "positional_encoding": positions}
    backend = Variant({}, (), Choices.of(declared)).backend()
    assert positions_of_one_side(backend, DECLARED) == {}


def test_trained_positions_show_in_the_parameters():
    declared = {**DECLARED, "positional_encoding": "learned"}
    backend = Variant({}, (), Choices.of(declared)).backend()
    assert positions_of_one_side(backend, declared) == {}


def test_divisor_of_variances_shows_in_the_encoder_of_a_mistaken_model():
    own = {"norm_variance": "unbiased", "norm_placement": "pre", "final_norm": "present"}
    fault = faults()["model.mask-missing-in-forward-alone"]
    backend = Variant({}, (fault,), Choices.of({**DECLARED, **own})).backend()
    found = choices_of_encoder(backend, {"output": "logits", "final_norm": "present"})
    assert found["norm_variance"] == "unbiased"
    assert found["norm_placement"] == "pre"


BESIDE = {"positional_encoding": "interleaved", "norm_placement": "pre", "norm_epsilon": 1e-6}


@share(2, rest=1)
@pytest.mark.parametrize(
    "mistake",
    [
        "positional_encoding.exponent-by-column",
        "positional_encoding.cosines-missing",
        "model.positions-twice",
    ],
)
def test_choices_beside_a_wrong_table_of_positions_are_found(mistake):
    fault = faults()[mistake]
    backend = Variant({}, (fault,), Choices.of({**DECLARED, **BESIDE})).backend()
    found = choices_beside_positions(backend, {"output": "logits", "embedding_scale": "sqrt-d"})
    assert {name: found[name] for name in BESIDE} == BESIDE
    assert found["embedding_scale"] == "none"


def test_choices_beside_right_positions_are_none_of_a_mistake():
    fault = faults()["model.mask-missing-in-forward-alone"]
    for faulted in ((), (fault,)):
        backend = Variant({}, faulted, Choices.of({**DECLARED, "activation": "relu"})).backend()
        assert choices_beside_positions(backend, {"output": "logits", "activation": "relu"}) == {}
