"""Training of decoder-only models: the text that they continue, gradients and curves."""

import numpy as np
import pytest
from learning import (
    FUSED,
    PLAIN,
    has_gradient_of_differences,
    losses,
    moved_weights,
    small,
    trained,
)
from rich.console import Console

import attentest
from attentest.studies.learning import learn
from attentest.studies.learning.continuation import Continuation
from attentest.studies.learning.learner import Layout
from attentest.studies.learning.task import BadTask
from attentest.views.learning import show
from attentest_spec import Choices, UnknownName, Unsupported

TEXT = {"model": "decoder-only"}
PADDED = {**TEXT, "task": "translation", "length": 1}


def continuation(**asked):
    """Return a small model with weights that are not those of the start, its weights and regime."""
    regime, rng = small(**{**PADDED, **asked}), np.random.default_rng(0)
    layout = Layout("language_model", regime.sizes, Choices.of(PLAIN.choices))
    start = moved_weights(layout, rng)
    model = PLAIN.build("language_model", regime.sizes)
    model.load(start)
    return Continuation(model, regime.sizes.source_pad), model, start, regime


def test_a_text_is_the_source_and_then_the_target():
    part, model, _, regime = continuation(task="copy", length=5)
    source, target = regime.of_task.batch([0], 3, 5)
    output = part(source, target)
    np.testing.assert_array_equal(output, model(np.hstack([source, target]), None, None)[:, 5:])
    with pytest.raises(Unsupported, match="no method encode"):
        part(source, method="encode")


def test_padding_of_the_source_is_masked_and_the_future_not_seen():
    part, model, start, regime = continuation()
    source, target = regime.of_task.batch([0], 6, 1)
    pad = regime.sizes.source_pad
    assert (source == pad).any()
    begun = target[:, :2]
    assert (begun != pad).all()
    output = part(source, begun)
    np.testing.assert_allclose(part(source, target)[:, :2], output, atol=1e-12)
    table = start["embedding.weight"].copy()
    table[pad] += 1.0
    model.load({**start, "embedding.weight": table})
    np.testing.assert_allclose(part(source, begun), output, atol=1e-12)
    unmasked = model(np.hstack([source, begun]), None, None)[:, source.shape[1] :]
    assert not np.allclose(unmasked, output)


def test_gradient_of_a_continued_text_is_that_of_finite_differences():
    part, _, start, regime = continuation()
    rng = np.random.default_rng(1)
    source, target = regime.of_task.batch([0], 4, 1)
    weight = rng.normal(size=(*target.shape, regime.sizes.target_vocabulary))
    has_gradient_of_differences(part, start, (source, target), weight, rng)


def test_decoder_only_models_of_equal_choices_have_equal_curves():
    one, other = (trained(backend, small(**PADDED)) for backend in (PLAIN, FUSED))
    np.testing.assert_allclose(losses(one), losses(other), rtol=1e-9)
    assert one.points[-1].validation < one.points[0].validation


def test_a_backend_without_a_decoder_only_model_is_left_out(capsys):
    recipes = dict(PLAIN.recipes)
    del recipes["language_model"]
    without = type(PLAIN)(name="without", title="a", choices=PLAIN.choices, recipes=recipes)
    asked = {"steps": 1, "d_model": 8, "heads": 2, "validation": 20, "batch": 4}
    found = learn(without, PLAIN, length=5, **TEXT, **asked)
    assert found.backends == ("plain",)
    said = "without provides no decoder-only model and was left out."
    assert any(note.startswith(said) for note in found.notes)
    show(Console(width=80), found)
    assert "decoder-only model width 8" in " ".join(capsys.readouterr().out.split())


def test_a_kind_of_model_that_cannot_be_is_refused():
    with pytest.raises(UnknownName, match="decoder-only"):
        small(model="decoder")
    with pytest.raises(BadTask, match="agreement trains an encoder alone"):
        small(**TEXT, task="agreement", length=1)


def test_a_sweep_varies_the_choices_of_decoder_only_models():
    asked = {"steps": 2, "every": 2, "d_model": 8, "heads": 2, "d_ff": 8, "validation": 5, **TEXT}
    found = attentest.sweep(choices={"block_norms": ("pre", "post")}, length=5, **asked)
    assert not found.failures
    curves = [one.points[-1].validation for one in found.records]
    assert len(set(curves)) == 2
