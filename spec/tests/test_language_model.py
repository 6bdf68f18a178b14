"""The oracle of decoder-only models against values by hand, its laws, and its parameters."""

import numpy as np
import pytest

from attentest_spec.choices import PAPER, Value
from attentest_spec.language_model import (
    causal_layer,
    language_model,
    own_positions,
    same_document,
    visible,
)
from attentest_spec.parameters import draw, shapes, tied
from attentest_spec.setting import Floats, Setting
from attentest_spec.sizes import Sizes

BY_HAND: dict[str, Value] = {
    "norm_kind": "rms",
    "rms_epsilon": 0.0,
    "block_norms": "pre",
    "embedding_scale": "none",
    "positional_encoding": "none",
    "feed_forward_bias": "none",
    "output": "logits",
    "generator_bias": "none",
    "tying": "none",
}
ONE_COLUMN = Sizes(d_model=1, heads=1, d_ff=1, layers=1, target_vocabulary=2)
SIZES = Sizes(d_model=8, heads=2, d_ff=6, layers=2, target_vocabulary=9, max_length=16)


def by_hand(**choices: Value) -> Setting:
    """Return the model of one column of the chapter."""
    block = {"query": 1.0, "key": 0.0, "value": 1.0, "output": 1.0}
    numbers = {f"self_attention.{name}.weight": one for name, one in block.items()}
    numbers |= {"feed_forward.inner.weight": 1.0, "feed_forward.outer.weight": 3.0}
    held = {f"layers.0.{name}": np.full((1, 1), one) for name, one in numbers.items()}
    for name in ("self_attention", "feed_forward"):
        held[f"layers.0.{name}_norm.gain"] = np.ones(1)
    held |= {
        "embedding.weight": np.array([[2.0], [4.0]]),
        "generator.weight": np.array([[1.0], [2.0]]),
    }
    return Setting(ONE_COLUMN, PAPER.but(**{**BY_HAND, **choices}), held)


def setting(rng: np.random.Generator, **choices: Value) -> Setting:
    chosen = PAPER.but(output="logits", **choices)
    return Setting(SIZES, chosen, draw("language_model", SIZES, chosen, rng))


def logits(given: Setting, *rows: list[int]) -> Floats:
    return language_model(given, np.array(rows))


@pytest.mark.parametrize("layout", ["sequential", "parallel-one-norm", "parallel-two-norms"])
def test_worked_values_of_the_chapter(layout: str) -> None:
    given = by_hand(block_layout=layout)
    assert logits(given, [0, 1]).tolist() == [[[6.0, 12.0], [8.0, 16.0]]]
    capped = logits(by_hand(block_layout=layout, logit_cap=6.0), [0])
    np.testing.assert_allclose(capped, [[[6 * np.tanh(1.0), 6 * np.tanh(2.0)]]], rtol=1e-15)


def test_places_of_norms_by_hand() -> None:
    x = np.array([[[2.0]]])
    block = {name[9:]: one for name, one in by_hand().parameters.items() if "layers" in name}
    expected = {"pre": 6.0, "post": 1.0, "post-branch": 4.0, "sandwich": 4.0}
    for option, number in expected.items():
        names = shapes("causal_layer", ONE_COLUMN, by_hand(block_norms=option).choices)
        held = {name: block.get(name, np.ones(1)) for name in names}
        given = Setting(ONE_COLUMN, by_hand(block_norms=option).choices, held)
        assert causal_layer(given, x).item() == number, option


def test_positions_of_padding() -> None:
    tokens, mask = np.zeros((2, 4), dtype=np.int64), np.array([[0, 0, 1, 1], [1, 1, 1, 0]]) > 0
    counted = PAPER.but(padded_positions="real-tokens")
    assert own_positions(counted, tokens, mask).tolist() == [[0, 0, 0, 1], [0, 1, 2, 2]]
    assert own_positions(PAPER, tokens, mask).tolist() == [[0, 1, 2, 3]] * 2
    assert own_positions(counted, tokens, None).tolist() == [[0, 1, 2, 3]] * 2


def test_padding_sees_itself_alone() -> None:
    keep = visible(3, np.array([[False, True, True]]))[0, 0]
    assert keep.tolist() == [[True, False, False], [False, True, False], [False, True, True]]


def test_padding_on_the_left_changes_nothing_at_given_positions(rng: np.random.Generator) -> None:
    given = setting(rng, positional_encoding="learned")
    alone = logits(given, [3, 1, 4])
    mask = np.array([[False, False, True, True, True]])
    padded = language_model(given, np.array([[7, 8, 3, 1, 4]]), mask, np.array([[0, 0, 0, 1, 2]]))
    np.testing.assert_allclose(padded[:, 2:], alone, atol=1e-12)


def test_rotary_positions_count_by_distance_alone(rng: np.random.Generator) -> None:
    given = setting(rng, positional_encoding="none", attention_rotary="query-and-key")
    tokens = np.array([[3, 1, 4, 1]])
    far = language_model(given, tokens, None, np.arange(4)[None] + 9)
    np.testing.assert_allclose(far, language_model(given, tokens), atol=1e-10)
    other = language_model(given, tokens, None, np.array([[0, 2, 4, 6]]))
    assert np.abs(other - far).max() > 1e-3


def test_documents_begin_where_positions_do_not_follow() -> None:
    same = same_document(np.array([[0, 1, 2, 0, 1, 7], [4, 5, 6, 7, 8, 9]]))
    blocks = np.zeros((6, 6), dtype=bool)
    for span in (slice(0, 3), slice(3, 5), slice(5, 6)):
        blocks[span, span] = True
    assert (same[0, 0] == blocks).all()
    assert same[1].all()


def test_documents_of_a_row_are_as_alone_where_positions_separate_them(
    rng: np.random.Generator,
) -> None:
    given = setting(rng, packed_documents="by-positions")
    tokens, places = rng.integers(0, 9, size=(2, 6)), np.array([[0, 1, 2, 0, 1, 7]] * 2)
    packed = language_model(given, tokens, None, places)
    for span in (np.s_[:, :3], np.s_[:, 3:5], np.s_[:, 5:]):
        alone = language_model(given, tokens[span], None, places[span])
        np.testing.assert_allclose(packed[span], alone, rtol=1e-12, atol=1e-13)
    one_text = Setting(SIZES, given.choices.but(packed_documents="one-text"), given.parameters)
    together = language_model(one_text, tokens, None, places)
    assert np.abs(together - packed)[:, 3:].max() > 1e-3
    np.testing.assert_array_equal(together[:, :3], packed[:, :3])


def test_parameters_of_tied_and_parallel_models() -> None:
    tied_names = tied("language_model", SIZES, PAPER)
    assert tied_names == {"generator.weight": "embedding.weight"}
    assert tied("language_model", SIZES, PAPER.but(tying="none")) == {}
    one = shapes("causal_layer", SIZES, PAPER.but(block_layout="parallel-one-norm"))
    assert "feed_forward_norm.gain" not in one
    two = shapes("causal_layer", SIZES, PAPER.but(block_norms="sandwich"))
    assert {"self_attention_branch_norm.gain", "feed_forward_branch_norm.bias"} <= set(two)


def test_cap_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=r"logit_cap must be a number c above 0.* -3 is not"):
        PAPER.but(logit_cap=-3.0)
