"""The decoder oracles against torch's decoder, closed forms, and the laws of the chapter."""

import numpy as np
import pytest
import reference
from reference import SIZES, hidden, setting, tensor
from test_encoder import PLACEMENTS, silenced

from attentest_spec.decoder import decoder, decoder_layer
from attentest_spec.layer_norm import layer_norm
from attentest_spec.masks import causal_mask
from attentest_spec.setting import Array, Floats

LENGTHS = pytest.mark.parametrize(("source", "target"), [(5, 7), (7, 5), (1, 3), (3, 1), (4, 4)])


def drawn(
    rng: np.random.Generator, source: int, target: int
) -> tuple[Floats, Floats, Array, Array]:
    """Draw x, memory, a ragged source mask and a causal target mask with hidden keys."""
    source_keep = rng.random((2, 1, 1, source)) < 0.5
    source_keep[..., source // 2] = True
    key_keep = rng.random((2, 1, 1, target)) < 0.7
    key_keep[..., 0] = True
    target_keep = causal_mask(setting("decoder_layer", rng), target) & key_keep
    x, memory = rng.normal(size=(2, target, 6)), rng.normal(size=(2, source, 6))
    return x, memory, source_keep, target_keep


@PLACEMENTS
@LENGTHS
def test_a_layer_equals_torch(
    rng: np.random.Generator, placement: str, source: int, target: int
) -> None:
    given = setting("decoder_layer", rng, norm_placement=placement, activation="gelu")
    x, memory, source_keep, target_keep = drawn(rng, source, target)
    expected = reference.decoder_layer(given)(
        tensor(x),
        tensor(memory),
        tgt_mask=hidden(target_keep, target, 2),
        memory_mask=hidden(source_keep, target, 2),
    )
    found = decoder_layer(given, x, memory, source_keep, target_keep)
    np.testing.assert_allclose(found, reference.array(expected), rtol=0, atol=1e-12)


@PLACEMENTS
@pytest.mark.parametrize("final", ["none", "present"])
def test_a_stack_equals_torch(rng: np.random.Generator, placement: str, final: str) -> None:
    given = setting("decoder", rng, norm_placement=placement, final_norm=final)
    x, memory, source_keep, target_keep = drawn(rng, 5, 7)
    expected = reference.decoder(given)(
        tensor(x),
        tensor(memory),
        tgt_mask=hidden(target_keep, 7, 2),
        memory_mask=hidden(source_keep, 7, 2),
    )
    found = decoder(given, x, memory, source_keep, target_keep)
    np.testing.assert_allclose(found, reference.array(expected), rtol=0, atol=1e-12)


@PLACEMENTS
def test_without_masks_it_equals_torch(rng: np.random.Generator, placement: str) -> None:
    given = setting("decoder", rng, norm_placement=placement)
    x, memory, _, _ = drawn(rng, 5, 7)
    expected = reference.decoder(given)(tensor(x), tensor(memory))
    np.testing.assert_allclose(decoder(given, x, memory), reference.array(expected), atol=1e-12)


def test_a_silent_pre_norm_layer_is_the_identity(rng: np.random.Generator) -> None:
    given = setting("decoder_layer", rng, norm_placement="pre")
    last = ("self_attention.output", "cross_attention.output", "feed_forward.outer")
    x, memory, _, _ = drawn(rng, 5, 7)
    assert (decoder_layer(silenced(given, *last), x, memory) == x).all()


def test_a_silent_post_norm_layer_is_its_three_norms(rng: np.random.Generator) -> None:
    given = setting("decoder_layer", rng)
    last = ("self_attention.output", "cross_attention.output", "feed_forward.outer")
    x, memory, _, _ = drawn(rng, 5, 7)
    expected = x
    for part in ("self_attention", "cross_attention", "feed_forward"):
        expected = layer_norm(given.under(f"{part}_norm"), expected)
    assert (decoder_layer(silenced(given, *last), x, memory) == expected).all()


def test_a_memory_of_one_row_gives_the_same_to_every_step(rng: np.random.Generator) -> None:
    given = setting("decoder_layer", rng, norm_placement="pre")
    quiet = silenced(given, "self_attention.output", "feed_forward.outer")
    x, memory, _, _ = drawn(rng, 1, 7)
    cross = given.under("cross_attention")
    value = memory @ cross["value.weight"].T + cross["value.bias"]
    branch = value @ cross["output.weight"].T + cross["output.bias"]
    np.testing.assert_allclose(decoder_layer(quiet, x, memory), x + branch, atol=1e-13)


def test_the_memory_is_not_normalised(rng: np.random.Generator) -> None:
    given = setting("decoder_layer", rng, norm_placement="pre")
    x, memory, _, _ = drawn(rng, 5, 7)
    moved = decoder_layer(given, x, memory + 1.0) - decoder_layer(given, x, memory)
    assert np.abs(moved).max() > 1e-3


@PLACEMENTS
def test_later_steps_do_not_reach_earlier_ones(rng: np.random.Generator, placement: str) -> None:
    given = setting("decoder", rng, norm_placement=placement)
    x, memory, source_keep, target_keep = drawn(rng, 5, 7)
    later = x.copy()
    later[:, 3:] += rng.normal(size=(2, 4, 6))
    before = decoder(given, x, memory, source_keep, target_keep)
    after = decoder(given, later, memory, source_keep, target_keep)
    np.testing.assert_allclose(after[:, :3], before[:, :3], atol=1e-14)
    assert np.abs(after[:, 3:] - before[:, 3:]).max() > 1e-3


@pytest.mark.parametrize("final", ["none", "present"])
def test_a_stack_is_its_layers_in_turn(rng: np.random.Generator, final: str) -> None:
    given = setting("decoder", rng, final_norm=final)
    x, memory, source_keep, target_keep = drawn(rng, 5, 7)
    expected = x
    for number in range(SIZES.layers):
        layer = given.under(f"layers.{number}")
        expected = decoder_layer(layer, expected, memory, source_keep, target_keep)
    if final == "present":
        expected = layer_norm(given.under("norm"), expected)
    assert (decoder(given, x, memory, source_keep, target_keep) == expected).all()


def test_masks_of_every_head_are_its_own(rng: np.random.Generator) -> None:
    given = setting("decoder_layer", rng)
    x, memory, _, _ = drawn(rng, 5, 7)
    source_keep, target_keep = rng.random((2, 2, 7, 5)) < 0.6, rng.random((2, 2, 7, 7)) < 0.6
    source_keep[..., 1] = target_keep[..., 0] = True
    expected = reference.decoder_layer(given)(
        tensor(x),
        tensor(memory),
        tgt_mask=hidden(target_keep, 7, 2),
        memory_mask=hidden(source_keep, 7, 2),
    )
    found = decoder_layer(given, x, memory, source_keep, target_keep)
    np.testing.assert_allclose(found, reference.array(expected), rtol=0, atol=1e-12)


def test_masks_of_one_shape_stay_in_their_places(rng: np.random.Generator) -> None:
    given = setting("decoder", rng)
    x, memory = rng.normal(size=(2, 2, 4, 6))
    first, second = rng.random((2, 2, 1, 4, 4)) < 0.6
    first[..., 1] = second[..., 0] = True
    expected = reference.decoder(given)(
        tensor(x), tensor(memory), tgt_mask=hidden(second, 4, 2), memory_mask=hidden(first, 4, 2)
    )
    found = decoder(given, x, memory, first, second)
    np.testing.assert_allclose(found, reference.array(expected), rtol=0, atol=1e-12)
