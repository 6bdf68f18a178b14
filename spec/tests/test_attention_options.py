"""The choices inside attention: values by hand, closed forms, and one step at a time."""

import math

import numpy as np
import pytest

from attentest_spec.attention import attention, scores
from attentest_spec.choices import PAPER, Choices, Value
from attentest_spec.decoder import cross_attention
from attentest_spec.multi_head_attention import merge, multi_head_attention, split
from attentest_spec.order import own_mask, query_places
from attentest_spec.parameters import draw, shapes
from attentest_spec.relative_bias import buckets, relative_bias, slopes
from attentest_spec.rms_norm import rms_norm
from attentest_spec.rotary import rotary
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes

WIDE = Sizes(d_model=12, heads=3)


def setting(rng: np.random.Generator, sizes: Sizes = WIDE, **choices: Value) -> Setting:
    chosen = PAPER.but(**choices)
    return Setting(sizes, chosen, draw("multi_head_attention", sizes, chosen, rng))


def identities(width: int = 2, heads: int = 1, **choices: Value) -> Setting:
    names = ("query", "key", "value", "output")
    held = {f"{name}.weight": np.eye(width) for name in names}
    return Setting(Sizes(d_model=width, heads=heads), PAPER.but(**choices), held)


def by_steps(given: Setting, x: Array, memory: Array, places: Array, others: Array) -> Floats:
    """Return attention from its parts, with queries and keys turned at explicit positions."""
    heads = given.sizes.heads
    q, k, v = (
        split(one @ given[f"{name}.weight"].T, heads)
        for name, one in (("query", x), ("key", memory), ("value", memory))
    )
    q, k = rotary(given, q, places), rotary(given, k, others)
    return merge(attention(given, q, k, v)[0]) @ given["output.weight"].T


def test_worked_values_of_rotary_positions() -> None:
    given = identities(attention_rotary="query-and-key")
    x = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    value = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    found = multi_head_attention(given, x, x, value)[0, 1]
    powers = np.exp(np.array([math.cos(1), 1.0]) / math.sqrt(2))
    np.testing.assert_allclose(found, powers / powers.sum(), rtol=1e-14)


@pytest.mark.parametrize("pairs", ["adjacent", "halves"])
def test_queries_and_keys_are_turned_and_values_are_not(
    rng: np.random.Generator, pairs: str
) -> None:
    given = setting(rng, attention_rotary="query-and-key", rotary_pairs=pairs)
    x, positions = rng.normal(size=(2, 4, 12)), np.array([[3, 0, 9, 1], [7, 8, 9, 10]])
    found = multi_head_attention(given, x, x, x, None, positions)
    np.testing.assert_allclose(found, by_steps(given, x, x, positions, positions), atol=1e-14)
    first = np.broadcast_to(np.arange(4), (2, 4))
    expected = by_steps(given, x, x, first, first)
    np.testing.assert_allclose(multi_head_attention(given, x, x, x), expected, atol=1e-14)


def test_one_number_added_to_all_positions_changes_nothing(rng: np.random.Generator) -> None:
    given = setting(rng, attention_rotary="query-and-key")
    x, positions = rng.normal(size=(1, 4, 12)), np.array([[3, 0, 9, 1]])
    np.testing.assert_allclose(
        multi_head_attention(given, x, x, x, None, positions + 5),
        multi_head_attention(given, x, x, x, None, positions),
        atol=1e-13,
    )


@pytest.mark.parametrize(("alignment", "first"), [("start", 0), ("end", 3)])
def test_queries_have_the_positions_of_their_keys(
    rng: np.random.Generator, alignment: str, first: int
) -> None:
    given = setting(rng, attention_rotary="query-and-key", query_alignment=alignment)
    x, memory = rng.normal(size=(2, 2, 12)), rng.normal(size=(2, 5, 12))
    positions = np.array([[3, 0, 9, 1, 4], [7, 8, 9, 10, 11]])
    found = multi_head_attention(given, x, memory, memory, None, positions)
    expected = by_steps(given, x, memory, positions[:, first : first + 2], positions)
    np.testing.assert_allclose(found, expected, atol=1e-14)


def test_scaling_by_the_length_counts_all_keys(rng: np.random.Generator) -> None:
    sizes = WIDE.but(trained_length=3)
    dynamic = {"attention_rotary": "query-and-key", "rotary_scaling": "dynamic-ntk"}
    given = setting(rng, sizes, query_alignment="start", **dynamic)
    x = rng.normal(size=(1, 8, 12))
    whole = multi_head_attention(given, x, x, x)
    np.testing.assert_allclose(multi_head_attention(given, x[:, :2], x, x), whole[:, :2])


@pytest.mark.parametrize("causality", ["by-mask", "built-in"])
@pytest.mark.parametrize("window", ["none", "with-query", "beside-query"])
@pytest.mark.parametrize("bias", ["none", "alibi", "buckets", "buckets-of-the-past"])
def test_last_queries_are_those_of_the_whole_sequence(
    rng: np.random.Generator, causality: str, window: str, bias: str
) -> None:
    given = setting(
        rng,
        attention_rotary="query-and-key",
        query_alignment="end",
        attention_causality=causality,
        attention_window=window,
        relative_bias=bias,
    )
    x = rng.normal(size=(2, 7, 12))
    whole = multi_head_attention(given, x, x, x)
    for last in (1, 3):
        found = multi_head_attention(given, x[:, -last:], x, x)
        np.testing.assert_allclose(found, whole[:, -last:], atol=1e-14)


@pytest.mark.parametrize(
    ("window", "causality", "rows"),
    [
        ("with-query", "built-in", ["1000", "1100", "0110", "0011"]),
        ("beside-query", "built-in", ["1000", "1100", "1110", "0111"]),
        ("with-query", "by-mask", ["1100", "1110", "0111", "0011"]),
        ("none", "built-in", ["1000", "1100", "1110", "1111"]),
    ],
)
def test_windows_by_hand(window: str, causality: str, rows: list[str]) -> None:
    choices = PAPER.but(attention_window=window, attention_causality=causality)
    found = own_mask(Setting(Sizes(window=2), choices), 4, 4)
    assert found is not None
    assert ["".join(str(int(one)) for one in row) for row in found[0, 0]] == rows


def test_causality_of_one_query_by_hand() -> None:
    for alignment, expected in (("start", [1, 0, 0, 0]), ("end", [1, 1, 1, 1])):
        choices = PAPER.but(attention_causality="built-in", query_alignment=alignment)
        found = own_mask(Setting(choices=choices), 1, 4)
        assert found is not None
        assert found[0, 0, 0].astype(int).tolist() == expected


def test_orders_without_a_formula_are_refused() -> None:
    assert query_places(PAPER.but(query_alignment="start"), 3, 2).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="2 queries, 3 keys"):
        query_places(PAPER, 2, 3)
    with pytest.raises(ValueError, match="3 queries cannot be the last of 2"):
        query_places(PAPER.but(query_alignment="end"), 3, 2)


def test_positions_of_too_few_keys_are_refused(rng: np.random.Generator) -> None:
    given = setting(rng, attention_rotary="query-and-key", query_alignment="start")
    x = rng.normal(size=(1, 3, 12))
    with pytest.raises(ValueError, match="2 keys are no positions of 3"):
        multi_head_attention(given, x, x[:, :2], x[:, :2], None, np.array([[0, 1]]))


def test_norms_of_queries_and_keys_by_hand() -> None:
    """With one key the output shows nothing: two keys, of which one is the query itself."""
    x = np.array([[[3.0, 4.0], [4.0, 3.0]]])
    rms = identities(query_key_norm="per-head", rms_weight="none", rms_epsilon=0.0)
    length = identities(query_key_norm="unit-length")
    for given, square in ((rms, 12.5), (length, 25.0)):
        powers = np.exp(np.array([25.0, 24.0]) / square / math.sqrt(2))
        expected = powers @ x[0] / powers.sum()
        np.testing.assert_allclose(multi_head_attention(given, x, x, x)[0, 0], expected)


@pytest.mark.parametrize(
    ("norm", "queries", "keys"), [("per-head", 2, 2), ("whole-projection", 12, 6)]
)
def test_weights_of_norms_have_the_width_they_normalise(
    norm: str, queries: int, keys: int, rng: np.random.Generator
) -> None:
    sizes = Sizes(d_model=12, heads=6, kv_heads=3)
    choices = PAPER.but(query_key_norm=norm, key_heads="fewer")
    table = shapes("multi_head_attention", sizes, choices)
    assert table["query_norm.gain"] == (queries,)
    assert table["key_norm.gain"] == (keys,)


@pytest.mark.parametrize("place", ["before-rotation", "after-rotation"])
@pytest.mark.parametrize("norm", ["per-head", "whole-projection"])
def test_norms_before_and_after_rotation(rng: np.random.Generator, norm: str, place: str) -> None:
    chosen = {"query_key_norm": norm, "query_key_norm_place": place}
    given = setting(rng, attention_rotary="query-and-key", **chosen)
    x = rng.normal(size=(2, 4, 12))

    def normed(name: str, one: Array) -> Floats:
        inner = given.under(name)
        if norm == "per-head":
            return rms_norm(inner, one)
        return split(rms_norm(inner, merge(one)), 3)

    heads = []
    for name in ("query", "key"):
        one = split(x @ given[f"{name}.weight"].T, 3)
        first = place == "before-rotation"
        one = normed(f"{name}_norm", one) if first else one
        one = rotary(given, one)
        heads.append(one if first else normed(f"{name}_norm", one))
    value = split(x @ given["value.weight"].T, 3)
    expected = merge(attention(given, *heads, value)[0]) @ given["output.weight"].T
    np.testing.assert_allclose(multi_head_attention(given, x, x, x), expected, atol=1e-14)


def test_a_head_of_zeros_has_no_length() -> None:
    x = np.zeros((1, 2, 2))
    found = multi_head_attention(identities(query_key_norm="unit-length"), x, x, x)
    assert (found == 0).all()


def test_score_scale_by_hand() -> None:
    query, key = np.array([[2.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 5.0]])
    assert scores(query, key, PAPER.but(score_scale=0.5)).tolist() == [[0.0, 1.0]]


def test_score_cap_by_hand() -> None:
    query, key = np.array([[2.0]]), np.array([[1.0], [-1.0], [1000.0]])
    found = scores(query, key, PAPER.but(score_cap=2.0))
    assert found[0] == pytest.approx([1.5231883119115297, -1.5231883119115297, 2.0], rel=1e-15)


def test_hidden_keys_stay_hidden_with_a_cap(rng: np.random.Generator) -> None:
    heads = rng.normal(size=(3, 1, 2, 4, 5))
    keep = np.array([True, False, True, True])[None, None, None]
    _, weights = attention(Setting(choices=PAPER.but(score_cap=1.0)), *heads, keep)
    assert (weights[..., 1] == 0).all()
    assert np.allclose(weights.sum(axis=-1), 1.0)


def test_slopes_by_hand() -> None:
    eight = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert slopes(8).tolist() == eight == slopes(8, "alibi-geometric").tolist()
    assert slopes(12).tolist() == [*eight, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    assert slopes(1).tolist() == [2**-8]
    np.testing.assert_allclose(slopes(3, "alibi-geometric"), 2.0 ** (-8 * np.array([1, 2, 3]) / 3))


def test_alibi_by_hand() -> None:
    given = Setting(Sizes(heads=8), PAPER.but(relative_bias="alibi"))
    found = relative_bias(given, 3, 3)
    assert found is not None
    assert found[1].tolist() == [[0, -0.25, -0.5], [-0.25, 0, -0.25], [-0.5, -0.25, 0]]


def test_buckets_by_hand() -> None:
    distances = np.array([[0, 1, 7, 8, 11, 12, 15, 16, 32, 64, 90, 91, 127, 128, 5000]])
    expected = [0, 1, 7, 8, 8, 9, 9, 10, 12, 14, 14, 15, 15, 15, 15]
    assert buckets(-distances, 32, 128, both=True)[0].tolist() == expected
    later = [0, *(16 + one for one in expected[1:])]
    assert buckets(distances, 32, 128, both=True)[0].tolist() == later
    assert not buckets(distances, 32, 128, both=False).any()
    past = [0, 1, 7, 8, 11, 12, 15, 16, 21, 26, 29, 29, 31, 31, 31]
    assert buckets(-distances, 32, 128, both=False)[0].tolist() == past


@pytest.mark.parametrize("kind", ["buckets", "buckets-of-the-past"])
def test_buckets_choose_a_row_for_each_head(rng: np.random.Generator, kind: str) -> None:
    given = setting(rng, relative_bias=kind)
    found = relative_bias(given, 4, 4)
    assert found is not None
    weight = given["relative_bias.weight"]
    assert found[:, 3, 1].tolist() == weight[2].tolist()
    assert found[:, 1, 3].tolist() == weight[18 if kind == "buckets" else 0].tolist()


def test_bias_is_added_to_the_scores_of_each_head(rng: np.random.Generator) -> None:
    given = identities(4, 2, relative_bias="alibi")
    x = np.zeros((1, 3, 4))
    value = np.broadcast_to(np.eye(3, 4), (1, 3, 4))
    found = multi_head_attention(given, x, x, value)
    for head, slope in enumerate(slopes(2)):
        powers = np.exp(-slope * np.array([0.0, 1.0, 2.0]))
        columns = slice(2 * head, 2 * head + 2)
        expected = (powers / powers.sum()) @ value[0][:, columns]
        np.testing.assert_allclose(found[0, 0, columns], expected, rtol=1e-14)


def test_attention_to_a_memory_has_no_order_of_its_own(rng: np.random.Generator) -> None:
    sizes = Sizes(d_model=6)
    ordered = {
        "attention_rotary": "query-and-key",
        "attention_window": "with-query",
        "attention_causality": "built-in",
        "relative_bias": "buckets",
    }
    choices = Choices(**ordered)  # type: ignore[arg-type]  # options by name
    held = draw("decoder_layer", sizes, choices, rng)
    assert "self_attention.relative_bias.weight" in held
    assert "cross_attention.relative_bias.weight" not in held
    x, memory = rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 3, 6))
    found = cross_attention(Setting(sizes, choices, held), x, memory)
    expected = cross_attention(Setting(sizes, PAPER, held), x, memory)
    assert (found == expected).all()


def test_worked_values_of_a_sink() -> None:
    given = identities(1, attention_sink="per-head")
    x, keys = np.ones((1, 2, 1)), np.array([[[0.0], [math.log(2.0)]]])
    value = np.array([[[4.0], [8.0]]])
    for sink, expected in ((0.0, 5.0), (math.log(3.0), 10.0 / 3.0), (-800.0, 20.0 / 3.0)):
        held = {**given.parameters, "sink.score": np.array([sink])}
        found = multi_head_attention(Setting(given.sizes, given.choices, held), x, keys, value)
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_sink_is_neither_masked_nor_shared_by_heads(rng: np.random.Generator) -> None:
    given = setting(rng, attention_sink="per-head")
    assert given["sink.score"].shape == (3,)
    x, keep = rng.normal(size=(2, 4, 12)), np.tril(np.ones((1, 1, 4, 4), dtype=bool))
    heads = [split(x @ given[f"{name}.weight"].T, 3) for name in ("query", "key", "value")]
    powers = np.exp(scores(heads[0], heads[1])) * keep
    total = powers.sum(axis=-1, keepdims=True) + np.exp(given["sink.score"])[:, None, None]
    expected = merge(powers / total @ heads[2]) @ given["output.weight"].T
    found = multi_head_attention(given, x, x, x, keep)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["score_scale", "score_cap"])
def test_numbers_that_are_not_positive_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        PAPER.but(**{name: 0.0})
