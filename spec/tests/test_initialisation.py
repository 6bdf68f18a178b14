"""The distributions of first numbers against values by hand, for every kind of parameter."""

from math import sqrt

import numpy as np
import pytest

from attentest_spec.choices import Choices
from attentest_spec.initialisation import Distribution, distribution, fans, is_packed, scaled
from attentest_spec.setting import Setting
from attentest_spec.sizes import Sizes

SIZES = Sizes(d_model=512, heads=8, d_ff=2048, layers=12)
LAYER = "encoder.layers.3."
INNER, OUTER = f"{LAYER}feed_forward.inner.weight", f"{LAYER}feed_forward.outer.weight"
QUERY = f"{LAYER}self_attention.query.weight"


def drawn(name: str, shape: tuple[int, ...], **choices: str) -> Distribution | None:
    """Return the distribution of a parameter of the untied model."""
    return distribution(Setting(SIZES, Choices(**{"tying": "none", **choices})), name, shape)  # type: ignore[arg-type]  # all are strings


@pytest.mark.parametrize(
    ("option", "kind", "bound"),
    [
        ("xavier-uniform", "uniform", sqrt(6 / 2560)),
        ("xavier-normal", "normal", sqrt(6 / 2560)),
        ("torch-linear", "uniform", 1 / sqrt(512)),
        ("normal-0.02", "normal", 0.02 * sqrt(3)),
    ],
)
def test_matrix_has_the_distribution_of_the_option(option: str, kind: str, bound: float) -> None:
    found = drawn(INNER, (2048, 512), initialisation=option)
    assert found is not None
    assert (found.kind, found.bound) == (kind, pytest.approx(bound, rel=1e-12))


def test_nothing_is_promised_without_a_declaration() -> None:
    names = (INNER, QUERY, "source_embedding.weight", "generator.weight", f"{LAYER}x.bias")
    assert [drawn(name, (512, 512)) for name in names] == [None] * 5


@pytest.mark.parametrize(("packing", "bound"), [("separate", 0.0765), ("packed", 0.0541)])
def test_packed_projections_are_smaller_under_xavier(packing: str, bound: float) -> None:
    named = {"initialisation": "xavier-uniform", "initialisation_packing": packing}
    found = drawn(QUERY, (512, 512), **named)
    assert found is not None
    assert found.bound == pytest.approx(bound, abs=5e-5)
    output = drawn(f"{LAYER}self_attention.output.weight", (512, 512), **named)
    assert output is not None
    assert output.bound == pytest.approx(0.0765, abs=5e-5)


def test_depth_scales_the_last_matrices_alone() -> None:
    named = {"initialisation": "normal-0.02", "residual_initialisation": "depth-scaled"}
    for name in (OUTER, f"{LAYER}self_attention.output.weight"):
        assert drawn(name, (512, 512), **named) == Distribution("normal", 0.02 / sqrt(24))
    assert drawn(INNER, (512, 512), **named) == Distribution("normal", 0.02)


def test_embeddings_and_generator_have_choices_of_their_own() -> None:
    shape = (37000, 512)
    by = {"normal-1": 1.0, "normal-inverse-sqrt-d": 512**-0.5, "normal-0.02": 0.02}
    for option, deviation in by.items():
        found = drawn("source_embedding.weight", shape, embedding_initialisation=option)
        assert found == Distribution("normal", deviation)
    named = {"initialisation": "xavier-normal"}
    as_matrices = drawn(
        "target_embedding.weight", shape, embedding_initialisation="as-matrices", **named
    )
    assert as_matrices == Distribution("normal", sqrt(2 / 37512))
    generator = drawn("generator.weight", shape, generator_initialisation="torch-linear", **named)
    assert generator == Distribution("uniform", 1 / sqrt(3 * 512))


def test_tied_vocabularies_norms_and_positions_are_left_open() -> None:
    named = {"initialisation": "normal-0.02", "embedding_initialisation": "normal-1"}
    named |= {"generator_initialisation": "as-matrices", "bias_initialisation": "zeros"}
    for name in ("source_embedding.weight", "generator.weight"):
        assert drawn(name, (11, 512), tying="all-three", **named) is None
    for name in ("encoder.norm.bias", f"{LAYER}feed_forward_norm.gain", "source_positions.weight"):
        assert drawn(name, (512,), **named) is None


def test_biases_are_zero_or_within_the_root_of_their_inputs() -> None:
    assert drawn(f"{LAYER}a.inner.bias", (2048,), bias_initialisation="zeros") == Distribution(
        "zero"
    )
    for leaf, inputs in (("inner", 512), ("outer", 2048)):
        name = f"{LAYER}feed_forward.{leaf}.bias"
        found = drawn(name, (512,), bias_initialisation="torch-linear")
        assert found is not None
        assert found.bound == pytest.approx(1 / sqrt(inputs), rel=1e-12)


def test_bias_of_wide_heads_has_the_inputs_of_all_heads() -> None:
    named = {"bias_initialisation": "torch-linear", "head_width": "d"}
    found = drawn(f"{LAYER}self_attention.output.bias", (512,), **named)
    assert found is not None
    assert found.bound == pytest.approx(1 / sqrt(8 * 512), rel=1e-12)
    for leaf, choices in (("inner", named), ("output", named | {"head_width": "d/h"})):
        found = drawn(f"{LAYER}x.{leaf}.bias", (512,), **choices)
        assert found == Distribution("uniform", 1 / sqrt(3 * 512))


@pytest.mark.parametrize(("tying", "open_"), [("target-and-output", True), ("embeddings", False)])
def test_generator_is_left_open_where_it_is_tied(tying: str, open_: bool) -> None:
    named = {"initialisation": "normal-0.02", "generator_initialisation": "as-matrices"}
    found = drawn("generator.weight", (11, 512), tying=tying, **named)
    assert found == (None if open_ else Distribution("normal", 0.02))


def test_projection_is_packed_by_its_name_alone() -> None:
    assert [is_packed(name) for name in ("query.weight", QUERY, INNER, "query")] == [
        True,
        True,
        False,
        False,
    ]


def test_fans_are_inputs_then_outputs() -> None:
    assert fans(Setting(SIZES), INNER, (2048, 512)) == (512, 2048)


def test_numbers_are_scaled_by_the_declared_deviation() -> None:
    given = Setting(SIZES, Choices(initialisation="normal-0.02", bias_initialisation="zeros"))
    np.testing.assert_allclose(scaled(given, INNER, np.array([[0.02, -0.04]])), [[1.0, -2.0]])
    for name in ("encoder.norm.gain", f"{LAYER}feed_forward.inner.bias"):
        with pytest.raises(ValueError, match="No deviation"):
            scaled(given, name, np.ones(3))
