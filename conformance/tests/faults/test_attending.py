"""Both reference models equal the oracle under mixtures of the choices inside attention."""

import numpy as np
import pytest

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest_spec import CHOICES, Choices, Setting, Sizes
from attentest_spec.multi_head_attention import multi_head_attention
from attentest_spec.parameters import draw

MIXED = (
    "attention_rotary",
    "attention_window",
    "query_key_norm",
    "query_key_norm_place",
    "relative_bias",
    "attention_causality",
    "key_heads",
    "rotary_pairs",
    "rotary_scaling",
)
NUMBERS = {"score_scale": (0.7, "inverse-sqrt-e"), "score_cap": (1.5, "none")}


def _mixture(rng):
    mixed = {name: str(rng.choice(CHOICES[name].names)) for name in MIXED}
    numbers = {name: values[rng.integers(2)] for name, values in NUMBERS.items()}
    return mixed | numbers | {"query_alignment": str(rng.choice(["start", "end"]))}


@pytest.mark.parametrize("name", REFERENCE_MODELS)
def test_mixtures_of_choices_equal_the_oracle(name):
    rng = np.random.default_rng(3)
    for _ in range(40):
        options, heads = _mixture(rng), int(rng.choice([2, 3, 6, 12]))
        backend = reference_backend(REFERENCE_MODELS[name], options)
        choices = Choices.of(backend.choices)
        sizes = Sizes(
            d_model=4 * heads,
            heads=heads,
            kv_heads=1,
            trained_length=6,
            bias_buckets=8,
            bias_distance=16,
        )
        part = backend.build("multi_head_attention", sizes)
        parameters = draw("multi_head_attention", sizes, choices, rng)
        part.load(parameters)
        queries, keys = ((4, 9), (21, 21))[rng.integers(2)]
        x = rng.normal(size=(2, queries, 4 * heads))
        memory = rng.normal(size=(2, keys, 4 * heads))
        inputs = (x, memory, memory, None)
        if options["attention_rotary"] != "none" and rng.integers(2):
            inputs = (*inputs, rng.integers(0, 30, size=(2, keys)))
        expected = multi_head_attention(Setting(sizes, choices, parameters), *inputs)
        np.testing.assert_allclose(part(*inputs), expected, atol=1e-11, err_msg=str(options))
