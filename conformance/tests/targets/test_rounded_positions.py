"""The embeddings of a whole model with a mistake show positions in single precision."""

import numpy as np
import pytest

from attentest.targets.adapt.parameters.behaviour import Stage
from attentest.targets.adapt.parameters.trials.shown import rounded_positions
from attentest_spec import Choices, Setting, Sizes
from attentest_spec.model import embed
from attentest_spec.parameters import draw

SIZES = Sizes(d_model=20)
TOKENS = np.array([[1, 4, 2], [3, 3, 5]])
AXES = ("embedding_scale", "positional_encoding")
ROUNDED = {"position_arithmetic": "float32"}


@pytest.mark.parametrize(
    ("computed", "factor", "shown"),
    [
        (Choices(**ROUNDED), 1.0, ROUNDED),
        (Choices(**ROUNDED, positional_encoding="halves"), 1.0, ROUNDED),
        (Choices(), 1.0, {}),
        (Choices(), 1 + 5e-8, {}),  # a scale in single precision
        (Choices(), 1.01, {}),
    ],
)
def test_embeddings_show_the_precision_of_positions(computed, factor, shown):
    def of_source(given):
        return embed(given, "source", TOKENS)

    parameters = draw("model", SIZES, Choices(), np.random.default_rng(5))
    output = factor * of_source(Setting(SIZES, computed, parameters))
    stage = Stage(AXES, (of_source,), output)
    assert rounded_positions([stage], parameters, SIZES, Choices()) == shown
