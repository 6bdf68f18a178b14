"""The encoder oracles against torch's encoder, closed forms, and the laws of the chapter."""

import numpy as np
import pytest
import reference
from reference import SIZES, hidden, setting, tensor

from attentest_spec.encoder import encoder, encoder_layer
from attentest_spec.feed_forward import feed_forward
from attentest_spec.layer_norm import layer_norm
from attentest_spec.multi_head_attention import multi_head_attention
from attentest_spec.setting import Setting

PLACEMENTS = pytest.mark.parametrize("placement", ["post", "pre"])
MASKS = pytest.mark.parametrize("shape", [None, (2, 1, 1, 5), (2, 1, 5, 5), (2, 2, 5, 5)])


def mask_of(rng: np.random.Generator, shape: tuple[int, ...] | None) -> np.ndarray | None:
    """Draw a mask that leaves every query its third key."""
    if shape is None:
        return None
    keep = rng.random(shape) < 0.6
    keep[..., 2] = True
    return keep


def silenced(given: Setting, *endings: str) -> Setting:
    """Return `given` with every parameter of the named last maps at zero."""
    quiet = {
        name: np.zeros_like(array) if name.startswith(endings) else array
        for name, array in given.parameters.items()
    }
    return Setting(given.sizes, given.choices, quiet)


@PLACEMENTS
@MASKS
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_a_layer_equals_torch(
    rng: np.random.Generator, placement: str, shape: tuple[int, ...] | None, activation: str
) -> None:
    given = setting("encoder_layer", rng, norm_placement=placement, activation=activation)
    x, keep = rng.normal(size=(2, 5, 6)), mask_of(rng, shape)
    expected = reference.encoder_layer(given)(tensor(x), src_mask=hidden(keep, 5, 2))
    found = encoder_layer(given, x, keep)
    np.testing.assert_allclose(found, reference.array(expected), rtol=0, atol=1e-12)


@PLACEMENTS
@MASKS
@pytest.mark.parametrize("final", ["none", "present"])
def test_a_stack_equals_torch(
    rng: np.random.Generator, placement: str, shape: tuple[int, ...] | None, final: str
) -> None:
    given = setting("encoder", rng, norm_placement=placement, final_norm=final)
    x, keep = rng.normal(size=(2, 5, 6)), mask_of(rng, shape)
    expected = reference.encoder(given)(tensor(x), mask=hidden(keep, 5, 2))
    found = encoder(given, x, keep)
    np.testing.assert_allclose(found, reference.array(expected), rtol=0, atol=1e-12)


def test_post_norm_layer_by_its_formula(rng: np.random.Generator) -> None:
    given, x = setting("encoder_layer", rng), rng.normal(size=(2, 5, 6))
    attended = multi_head_attention(given.under("self_attention"), x, x, x)
    middle = layer_norm(given.under("self_attention_norm"), x + attended)
    expected = layer_norm(
        given.under("feed_forward_norm"), middle + feed_forward(given.under("feed_forward"), middle)
    )
    assert (encoder_layer(given, x) == expected).all()


def test_a_silent_pre_norm_layer_is_the_identity(rng: np.random.Generator) -> None:
    given = setting("encoder_layer", rng, norm_placement="pre")
    quiet = silenced(given, "self_attention.output", "feed_forward.outer")
    x = rng.normal(size=(2, 5, 6))
    assert (encoder_layer(quiet, x) == x).all()


def test_a_silent_post_norm_layer_is_its_two_norms(rng: np.random.Generator) -> None:
    given = setting("encoder_layer", rng)
    quiet = silenced(given, "self_attention.output", "feed_forward.outer")
    x = rng.normal(size=(2, 5, 6))
    once = layer_norm(given.under("self_attention_norm"), x)
    assert (encoder_layer(quiet, x) == layer_norm(given.under("feed_forward_norm"), once)).all()


def test_one_position_sees_its_own_value_alone(rng: np.random.Generator) -> None:
    given = setting("encoder_layer", rng, norm_placement="pre")
    quiet = silenced(given, "feed_forward.outer")
    x = rng.normal(size=(3, 1, 6))
    normed = layer_norm(given.under("self_attention_norm"), x)
    value = normed @ given["self_attention.value.weight"].T + given["self_attention.value.bias"]
    branch = value @ given["self_attention.output.weight"].T + given["self_attention.output.bias"]
    np.testing.assert_allclose(encoder_layer(quiet, x), x + branch, atol=1e-14)


@PLACEMENTS
def test_positions_permute(rng: np.random.Generator, placement: str) -> None:
    given = setting("encoder", rng, norm_placement=placement)
    x, keep = rng.normal(size=(2, 5, 6)), np.array([[[[1, 0, 1, 1, 1]]], [[[1, 1, 1, 0, 0]]]]) > 0
    order = [3, 0, 4, 1, 2]
    turned = encoder(given, x[:, order], keep[..., order])
    np.testing.assert_allclose(turned, encoder(given, x, keep)[:, order], atol=1e-12)


@pytest.mark.parametrize("final", ["none", "present"])
def test_a_stack_is_its_layers_in_turn(rng: np.random.Generator, final: str) -> None:
    given = setting("encoder", rng, final_norm=final)
    x = expected = rng.normal(size=(2, 5, 6))
    for number in range(SIZES.layers):
        expected = encoder_layer(given.under(f"layers.{number}"), expected)
    if final == "present":
        expected = layer_norm(given.under("norm"), expected)
    assert (encoder(given, x) == expected).all()


def test_depth_follows_the_sizes_and_not_the_parameters(rng: np.random.Generator) -> None:
    given, x = setting("encoder", rng), rng.normal(size=(2, 5, 6))
    shallow = Setting(SIZES.but(layers=1), given.choices, given.parameters)
    assert (encoder(shallow, x) == encoder_layer(given.under("layers.0"), x)).all()


def test_a_shared_norm_is_one_norm_everywhere(rng: np.random.Generator) -> None:
    given = setting("encoder", rng, norm_sharing="shared")
    gains = [array for name, array in given.parameters.items() if name.endswith("norm.gain")]
    assert len(gains) == 2 * SIZES.layers
    assert all((gain == gains[0]).all() for gain in gains)
    x = rng.normal(size=(2, 5, 6))
    expected = reference.encoder(given)(tensor(x))
    np.testing.assert_allclose(encoder(given, x), reference.array(expected), atol=1e-12)


def test_heads_as_wide_as_the_model_fit_into_a_layer(rng: np.random.Generator) -> None:
    given = setting("encoder_layer", rng, head_width="d", projection_bias="none")
    assert given["self_attention.query.weight"].shape == (12, 6)
    assert np.isfinite(encoder_layer(given, rng.normal(size=(2, 5, 6)))).all()


def test_every_layer_of_a_deep_stack_is_applied(rng: np.random.Generator) -> None:
    given = setting("encoder", rng, SIZES.but(layers=13), norm_placement="pre")
    x = rng.normal(size=(1, 3, 6))
    before = encoder(given, x)
    for number in range(13):
        name = f"layers.{number}.feed_forward.outer.bias"
        moved = {**given.parameters, name: given[name] + np.arange(6.0)}
        after = encoder(Setting(given.sizes, given.choices, moved), x)
        assert np.abs(after - before).max() > 1e-3, number


@pytest.mark.parametrize("layers", [1, 2])
def test_a_final_norm_follows_any_number_of_layers(rng: np.random.Generator, layers: int) -> None:
    sizes = SIZES.but(layers=layers)
    given, x = setting("encoder", rng, sizes, final_norm="present"), rng.normal(size=(2, 5, 6))
    bare = Setting(sizes, given.choices.but(final_norm="none"), given.parameters)
    assert (encoder(given, x) == layer_norm(given.under("norm"), encoder(bare, x))).all()


def test_every_part_reports_under_its_own_name(rng: np.random.Generator) -> None:
    drawn, seen = setting("encoder", rng, SIZES.but(layers=1)), []
    given = Setting(
        drawn.sizes, drawn.choices, drawn.parameters, observe=lambda name, *_: seen.append(name)
    )
    encoder(given, rng.normal(size=(1, 3, 6)))
    layer = "layers.0"
    maps = [f"{layer}.self_attention.{one}" for one in ("query", "key", "value", "output")]
    fed = [f"{layer}.feed_forward.{one}" for one in ("inner", "outer")]
    norms = [f"{layer}.{one}_norm" for one in ("self_attention", "feed_forward")]
    parts = [*maps, f"{layer}.self_attention", norms[0], *fed, f"{layer}.feed_forward", norms[1]]
    assert seen == [*parts, layer]
