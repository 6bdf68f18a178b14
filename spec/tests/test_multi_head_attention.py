"""The multi-head oracle against one head, values by hand, and torch's module."""

import numpy as np
import pytest
import torch
from torch import nn

from attentest_spec.attention import attention
from attentest_spec.choices import PAPER, Value
from attentest_spec.linear import linear
from attentest_spec.multi_head_attention import merge, multi_head_attention, split
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes

Inputs = tuple[Floats, Floats, Floats]


def setting(rng: np.random.Generator, heads: int = 3, **choices: Value) -> Setting:
    """Draw the parameters of attention over 6 columns."""
    sizes = Sizes(d_model=6, heads=heads)
    chosen = PAPER.but(**choices)
    return Setting(sizes, chosen, draw("multi_head_attention", sizes, chosen, rng))


def drawn(rng: np.random.Generator, queries: int = 5, keys: int = 7) -> Inputs:
    """Draw query (2, Q, 6), key (2, K, 6) and value (2, K, 6)."""
    return (
        rng.normal(size=(2, queries, 6)),
        rng.normal(size=(2, keys, 6)),
        rng.normal(size=(2, keys, 6)),
    )


def of_torch(given: Setting, inputs: Inputs, keep: Array | None = None) -> Floats:
    """Compute with torch's module, whose weights are packed and whose True means blocked."""
    heads, bias = given.sizes.heads, given.choices.projection_bias == "present"
    module = nn.MultiheadAttention(6, heads, bias=bias, batch_first=True, dtype=torch.float64)
    state = {
        "in_proj_weight": [given[f"{name}.weight"] for name in ("query", "key", "value")],
        "out_proj.weight": [given["output.weight"]],
    }
    if bias:
        state["in_proj_bias"] = [given[f"{name}.bias"] for name in ("query", "key", "value")]
        state["out_proj.bias"] = [given["output.bias"]]
    packed = {name: torch.from_numpy(np.concatenate(parts)) for name, parts in state.items()}
    module.load_state_dict(packed)
    blocked = None
    if keep is not None:
        full = np.broadcast_to(~keep, (2, heads, inputs[0].shape[1], inputs[1].shape[1]))
        blocked = torch.from_numpy(full.reshape(2 * heads, *full.shape[2:]).copy())
    tensors = [torch.from_numpy(array) for array in inputs]
    output: Floats = module(*tensors, attn_mask=blocked)[0].detach().numpy()
    return output


def test_linear_by_hand() -> None:
    given = Setting(
        parameters={"a.weight": np.array([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]]), "b": np.ones(1)}
    )
    assert linear(given, "a", np.array([[10.0, 1.0]])).tolist() == [[12.0, 1.0, 30.0]]


def test_linear_adds_the_bias_where_there_is_one() -> None:
    given = Setting(parameters={"weight": np.array([[2.0]]), "bias": np.array([5.0])})
    assert linear(given, "", np.array([3.0])).tolist() == [11.0]


@pytest.mark.parametrize("bias", ["none", "present"])
@pytest.mark.parametrize("heads", [1, 2, 3, 6])
@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (7, 5), (1, 3), (3, 1)])
def test_equals_torch(
    rng: np.random.Generator, heads: int, bias: str, queries: int, keys: int
) -> None:
    given = setting(rng, heads, projection_bias=bias)
    inputs = drawn(rng, queries, keys)
    found = multi_head_attention(given, *inputs)
    np.testing.assert_allclose(found, of_torch(given, inputs), atol=1e-12)


def test_a_bias_of_the_output_alone_is_added_to_what_torch_gives_without(
    rng: np.random.Generator,
) -> None:
    given = setting(rng, projection_bias="output-alone")
    inputs = drawn(rng)
    found = multi_head_attention(given, *inputs)
    bare = of_torch(given, inputs) + given["output.bias"]
    np.testing.assert_allclose(found, bare, atol=1e-12)


def test_a_bias_of_the_key_changes_nothing(rng: np.random.Generator) -> None:
    given = setting(rng, projection_bias="present")
    without = {name: one for name, one in given.parameters.items() if name != "key.bias"}
    bare = Setting(given.sizes, given.choices.but(projection_bias="all-but-key"), without)
    inputs = drawn(rng)
    found = multi_head_attention(bare, *inputs)
    np.testing.assert_allclose(found, multi_head_attention(given, *inputs), atol=1e-12)


@pytest.mark.parametrize(
    "shape", [(2, 1, 1, 7), (1, 1, 5, 7), (2, 1, 5, 7), (2, 3, 5, 7), (1, 3, 5, 7)]
)
def test_equals_torch_under_a_mask(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    given = setting(rng, projection_bias="present")
    inputs = drawn(rng)
    keep = rng.random(shape) < 0.5
    keep[..., -1] = True
    found = multi_head_attention(given, *inputs, keep)
    np.testing.assert_allclose(found, of_torch(given, inputs, keep), atol=1e-12)


def test_identity_projections_leave_attention_within_slices(rng: np.random.Generator) -> None:
    sizes = Sizes(d_model=6, heads=2)
    names = ("query", "key", "value", "output")
    given = Setting(sizes, parameters={f"{name}.weight": np.eye(6) for name in names})
    query, key, value = drawn(rng)
    found = multi_head_attention(given, query, key, value)
    for start in (0, 3):
        q, k, v = (array[:, None, :, start : start + 3] for array in (query, key, value))
        expected = attention(given, q, k, v)[0][:, 0]
        np.testing.assert_allclose(found[:, :, start : start + 3], expected, atol=1e-14)


def test_worked_values_of_the_chapter() -> None:
    given = Setting(
        Sizes(d_model=2, heads=2),
        parameters={
            "query.weight": np.eye(2),
            "key.weight": np.eye(2),
            "value.weight": np.eye(2),
            "output.weight": np.array([[0.0, 1.0], [1.0, 0.0]]),
        },
    )
    query = np.array([[[1.0, 0.0]]])
    key = np.log(np.array([[[1.0, 1.0], [3.0, 1.0]]]))
    value = np.array([[[0.0, 2.0], [4.0, 6.0]]])
    found = multi_head_attention(given, query, key, value)
    np.testing.assert_allclose(found, [[[4.0, 3.0]]], rtol=1e-15)


def test_reordering_heads_in_all_four_weights_changes_nothing(rng: np.random.Generator) -> None:
    given = setting(rng)
    inputs = drawn(rng)
    order = [4, 5, 0, 1, 2, 3]
    turned = {
        name: array[:, order] if name == "output.weight" else array[order]
        for name, array in given.parameters.items()
    }
    other = Setting(given.sizes, given.choices, turned)
    np.testing.assert_allclose(
        multi_head_attention(other, *inputs), multi_head_attention(given, *inputs), atol=1e-14
    )


def test_heads_as_wide_as_the_model_are_a_sum_of_whole_attentions(
    rng: np.random.Generator,
) -> None:
    given = setting(rng, heads=4, head_width="d")  # 4 does not divide 6: nothing is divided here
    inputs = drawn(rng)
    total = np.zeros((2, 5, 6))
    for head in range(4):
        rows = slice(6 * head, 6 * head + 6)
        q, k, v = (
            (array @ given[f"{name}.weight"][rows].T)[:, None]
            for name, array in zip(("query", "key", "value"), inputs, strict=True)
        )
        total += attention(given, q, k, v)[0][:, 0] @ given["output.weight"][:, rows].T
    np.testing.assert_allclose(multi_head_attention(given, *inputs), total, atol=1e-13)


def test_heads_as_wide_as_the_model_divide_scores_by_the_root_of_its_width() -> None:
    """With weights of ones every head has the same scores: 4 q k, divided by the root of 4."""
    weights = {f"{name}.weight": np.ones((12, 4)) for name in ("query", "key", "value")}
    given = Setting(
        Sizes(d_model=4, heads=3),
        PAPER.but(head_width="d"),
        {**weights, "output.weight": np.ones((4, 12)) / 12},
    )
    query = np.array([[[1.0, 0.0, 0.0, 0.0]]])
    key = np.log([[[4.0, 1.0, 1.0, 1.0], [1.0, 1.0, 3.0, 1.0]]]) / 2.0
    value = np.array([[[1.0, 0.0, 0.0, 0.0], [0.0, 8.0, 0.0, 0.0]]])
    found = multi_head_attention(given, query, key, value)
    np.testing.assert_allclose(found, np.full((1, 1, 4), (4.0 * 1.0 + 3.0 * 8.0) / 7.0), rtol=1e-14)


def test_a_key_bias_never_changes_the_output(rng: np.random.Generator) -> None:
    given = setting(rng, projection_bias="present")
    inputs = drawn(rng)
    moved = dict(given.parameters) | {"key.bias": given["key.bias"] + 2.0}
    found = multi_head_attention(Setting(given.sizes, given.choices, moved), *inputs)
    np.testing.assert_allclose(found, multi_head_attention(given, *inputs), atol=1e-13)


@pytest.mark.parametrize("heads", [4, 5, 0])
def test_a_width_that_heads_do_not_divide_is_refused(rng: np.random.Generator, heads: int) -> None:
    given = Setting(Sizes(d_model=6, heads=heads))
    with pytest.raises(ValueError, match=rf"\b6\b.*\b{heads}\b"):
        multi_head_attention(given, *drawn(rng))


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 5, 8, 12, 13])
@pytest.mark.parametrize("width", [1, 3, 5, 8])
def test_head_number_i_has_slice_number_i(rng: np.random.Generator, heads: int, width: int) -> None:
    x = rng.normal(size=(2, 3, heads * width))
    found = split(x, heads)
    assert found.shape == (2, heads, 3, width)
    for number in range(heads):
        own = x[:, :, number * width : (number + 1) * width]
        assert (found[:, number] == own).all()
    assert (merge(found) == x).all()


@pytest.mark.parametrize("heads", [0, -1, -3])
@pytest.mark.parametrize("head_width", ["d/h", "d"])
def test_fewer_than_one_head_is_refused(
    rng: np.random.Generator, heads: int, head_width: str
) -> None:
    drawn_at = setting(rng, head_width=head_width)
    given = Setting(drawn_at.sizes.but(heads=heads), drawn_at.choices, drawn_at.parameters)
    with pytest.raises(ValueError, match=f"among {heads} heads"):
        multi_head_attention(given, *drawn(rng))


def test_worked_values_of_shared_heads() -> None:
    sizes = Sizes(d_model=4, heads=4, kv_heads=2)
    choices = PAPER.but(key_heads="fewer")
    held = {
        "query.weight": np.eye(4),
        "key.weight": np.zeros((2, 4)),
        "value.weight": np.array([[3.0, 0, 0, 0], [7.0, 0, 0, 0]]),
        "output.weight": np.eye(4),
    }
    x = np.array([[[1.0, 0, 0, 0]]])
    found = multi_head_attention(Setting(sizes, choices, held), x, x, x)
    assert found.tolist() == [[[3, 3, 7, 7]]]


def test_shared_heads_equal_torch(rng: np.random.Generator) -> None:
    sizes, choices = Sizes(d_model=12, heads=6, kv_heads=2), PAPER.but(key_heads="fewer")
    held = draw("multi_head_attention", sizes, choices, rng)
    assert held["key.weight"].shape == held["value.weight"].shape == (4, 12)
    x, memory = rng.normal(size=(2, 3, 12)), rng.normal(size=(2, 5, 12))
    heads = [
        torch.from_numpy(one @ held[f"{name}.weight"].T).unflatten(-1, (-1, 2)).transpose(1, 2)
        for name, one in (("query", x), ("key", memory), ("value", memory))
    ]
    mixed = torch.nn.functional.scaled_dot_product_attention(*heads, enable_gqa=True)
    expected = mixed.transpose(1, 2).flatten(2).numpy() @ held["output.weight"].T
    found = multi_head_attention(Setting(sizes, choices, held), x, memory, memory)
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_heads_that_cannot_be_shared_are_refused(rng: np.random.Generator) -> None:
    sizes, choices = Sizes(d_model=12, heads=6, kv_heads=4), PAPER.but(key_heads="fewer")
    x = np.zeros((1, 1, 12))
    with pytest.raises(ValueError, match="6 query heads cannot share 4"):
        multi_head_attention(Setting(sizes, choices, {}), x, x, x)


def test_built_in_causality_equals_a_causal_mask(rng: np.random.Generator) -> None:
    sizes, choices = Sizes(d_model=6), PAPER.but(attention_causality="built-in")
    held = draw("multi_head_attention", sizes, choices, rng)
    x, causal = rng.normal(size=(2, 5, 6)), np.tril(np.ones((1, 1, 5, 5), dtype=bool))
    given = Setting(sizes, choices, held)
    expected = multi_head_attention(Setting(sizes, PAPER, held), x, x, x, causal)
    assert np.array_equal(multi_head_attention(given, x, x, x), expected)
    padding = np.array([True, True, False, True, True])[None, None, None]
    both = multi_head_attention(Setting(sizes, PAPER, held), x, x, x, causal & padding)
    assert np.array_equal(multi_head_attention(given, x, x, x, padding), both)
    with pytest.raises(ValueError, match="5 queries, 2 keys"):
        multi_head_attention(given, x, x[:, :2], x[:, :2])
