"""The one mistake that gives all numbers of a whole model."""

import pytest
from proof import share

from attentest.analysis.diagnosis.variants import Variant
from attentest.analysis.mistaken_models import mistake_of_model
from attentest.faults import faults
from attentest_spec import Choices

DECLARED = {"output": "logits", "embedding_scale": "none", "norm_placement": "pre"}


@pytest.mark.parametrize(
    "mistake",
    [
        "positional_encoding.exponent-halved",
        "feed_forward.no-activation",
        "decoder.no-skip-around-the-memory",
    ],
)
def test_mistake_of_a_model_is_found_with_choices_that_it_hides(mistake):
    backend = Variant({}, (faults()[mistake],), Choices.of(DECLARED)).backend()
    name, choices = mistake_of_model(backend, {"output": "logits", "embedding_scale": "none"})
    assert name == mistake
    assert choices["norm_placement"] == "pre"


@share(2, rest=1)
@pytest.mark.parametrize("mistake", ["", "generator.temperature", "model.encoder-left-out"])
def test_right_models_and_other_mistakes_are_none_of_them(mistake):
    faulted = (faults()[mistake],) if mistake else ()
    backend = Variant({}, faulted, Choices.of(DECLARED)).backend()
    assert mistake_of_model(backend, DECLARED) == ("", {})
