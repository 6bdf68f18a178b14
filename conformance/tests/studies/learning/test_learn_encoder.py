"""Training of an encoder alone: the classifier around it, and backends without one."""

import numpy as np
import pytest
from learning import (
    FUSED,
    PLAIN,
    has_gradient_of_differences,
    moved_weights,
    same_state,
    small,
    trained,
)

from attentest.faults.reference_models import Plain, reference_backend
from attentest.studies.learning import learn
from attentest.studies.learning.learner import Classifier, Layout
from attentest_spec import Choices

TASK = {"task": "agreement", "length": 1}


def test_gradient_of_the_classifier_is_that_of_finite_differences():
    regime, rng = small(**TASK), np.random.default_rng(0)
    layout = Layout("encoder", regime.sizes, Choices.of(PLAIN.choices))
    start = moved_weights(layout, rng)
    part = Classifier(PLAIN.build("encoder", regime.sizes), regime)
    part.load(start)
    source, target = regime.of_task.batch([0], 5, 1)
    assert (source == regime.sizes.source_pad).any()
    weight = rng.normal(size=(5, 1, 3))
    has_gradient_of_differences(part, start, (source, target[:, :1]), weight, rng)


def test_encoders_of_equal_choices_have_equal_curves():
    one, other = (trained(backend, small(**TASK)) for backend in (PLAIN, FUSED))
    for mine, its in zip(one.points, other.points, strict=True):
        assert mine.validation == pytest.approx(its.validation, rel=1e-9)
    assert one.points[-1].validation < one.points[0].validation
    assert 0.3 < one.points[0].sequences < 0.7 or one.points[0].sequences == 0


def test_backend_without_an_encoder_is_left_out_and_one_with_nothing_else_is_trained():
    recipes = dict(PLAIN.recipes)
    del recipes["encoder"]
    without = type(PLAIN)(name="without", title="a", choices=PLAIN.choices, recipes=recipes)
    alone = type(PLAIN)(
        name="alone",
        title="a",
        choices=PLAIN.choices,
        recipes={"encoder": PLAIN.recipes["encoder"]},
    )
    asked = {"steps": 1, "d_model": 8, "heads": 2, "validation": 20, "batch": 4}
    found = learn(without, alone, **TASK, **asked)
    assert found.backends == ("alone",)
    assert "without provides no encoder of its own and was left out." in found.notes
    assert not found.failures
    found = learn(alone, task="copy", **asked)
    assert found.notes == ("alone provides no encoder-decoder model and was left out.",)


def test_the_kind_of_a_model_that_is_left_out_is_named():
    recipes = {"language_model": PLAIN.recipes["language_model"]}
    alone = type(PLAIN)(name="alone", title="a", choices=PLAIN.choices, recipes=recipes)
    (note,) = learn(alone, task="copy", steps=1).notes
    assert note.endswith("left out. --model decoder-only trains the one that it provides.")


def test_shared_norms_of_an_encoder_stay_equal():
    backend = reference_backend(Plain, {"tying": "none", "norm_sharing": "shared"})
    state = trained(backend, small(**TASK))
    assert not any(name.endswith("feed_forward_norm.gain") for name in state.parameters)
    same_state(state, trained(backend, small(**TASK)))
