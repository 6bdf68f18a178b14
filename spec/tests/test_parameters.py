"""The canonical parameters: counts against torch's modules, ties, and drawn values."""

import numpy as np
import pytest
from torch import nn

from attentest_spec.choices import PAPER
from attentest_spec.components import COMPONENTS
from attentest_spec.parameters import count, draw, head_width, one_vocabulary, shapes, tied
from attentest_spec.sizes import Sizes

BASE = Sizes(d_model=512, heads=8, d_ff=2048, layers=6)
SMALL = Sizes(d_model=6, heads=3, d_ff=5, layers=2, source_vocabulary=11, target_vocabulary=13)
SHARED = SMALL.but(target_vocabulary=11)
BIASED = PAPER.but(projection_bias="present")


def in_torch(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_base_stacks_hold_44_138_496_numbers() -> None:
    found = count("encoder", BASE, BIASED) + count("decoder", BASE, BIASED)
    assert found == 44_138_496


def test_the_base_stacks_equal_torch_with_its_final_norms() -> None:
    choices = BIASED.but(final_norm="present")
    found = count("encoder", BASE, choices) + count("decoder", BASE, choices)
    assert found == in_torch(nn.Transformer(device="meta", batch_first=True))


@pytest.mark.parametrize("bias", ["none", "present"])
def test_attention_equals_torch(bias: str) -> None:
    choices = PAPER.but(projection_bias=bias)
    module = nn.MultiheadAttention(6, 3, bias=bias == "present")
    assert count("multi_head_attention", SMALL, choices) == in_torch(module)


@pytest.mark.parametrize(
    ("option", "biased"),
    [("output-alone", ["output"]), ("all-but-key", ["query", "value", "output"])],
)
def test_every_bias_of_attention_is_one_row_more(option: str, biased: list[str]) -> None:
    choices = PAPER.but(projection_bias=option)
    names = shapes("multi_head_attention", SMALL, choices)
    assert [name for name in names if name.endswith(".bias")] == [f"{one}.bias" for one in biased]
    bare = count("multi_head_attention", SMALL, PAPER)
    assert count("multi_head_attention", SMALL, choices) == bare + len(biased) * SMALL.d_model


def test_layers_without_biases_equal_torch() -> None:
    bare = PAPER.but(norm_bias="none", feed_forward_bias="none")
    layers = {
        "encoder_layer": nn.TransformerEncoderLayer,
        "decoder_layer": nn.TransformerDecoderLayer,
    }
    for component, layer in layers.items():
        assert count(component, SMALL, bare) == in_torch(layer(6, 3, 5, bias=False))


def test_a_generator_without_a_bias_is_its_matrix() -> None:
    assert shapes("generator", SMALL, PAPER.but(generator_bias="none")) == {"weight": (13, 6)}


def test_heads_as_wide_as_the_model_cost_h_times_as_much() -> None:
    wide = PAPER.but(head_width="d")
    narrow = count("multi_head_attention", SMALL, PAPER)
    assert count("multi_head_attention", SMALL, wide) == SMALL.heads * narrow
    assert (head_width(SMALL, PAPER), head_width(SMALL, wide)) == (2, 6)


def test_shapes_are_outputs_by_inputs() -> None:
    assert shapes("feed_forward", SMALL, PAPER) == {
        "inner.weight": (5, 6),
        "inner.bias": (5,),
        "outer.weight": (6, 5),
        "outer.bias": (6,),
    }
    assert shapes("generator", SMALL, PAPER) == {"weight": (13, 6), "bias": (13,)}
    assert shapes("multi_head_attention", SMALL, PAPER.but(head_width="d")) == {
        "query.weight": (18, 6),
        "key.weight": (18, 6),
        "value.weight": (18, 6),
        "output.weight": (6, 18),
    }


@pytest.mark.parametrize("name", ["padding_mask", "causal_mask", "target_mask", "attention"])
def test_functions_have_no_parameters(name: str) -> None:
    assert shapes(name, SMALL, PAPER) == {}
    assert count(name, SMALL, PAPER) == 0


def test_positions_have_parameters_where_they_are_learned() -> None:
    learned = PAPER.but(positional_encoding="learned")
    assert shapes("positional_encoding", SMALL, PAPER) == {}
    assert shapes("positional_encoding", SMALL, learned) == {"weight": (32, 6)}
    model = set(shapes("model", SMALL, learned)) - set(shapes("model", SMALL, PAPER))
    assert model == {"source_positions.weight", "target_positions.weight"}


def test_a_composite_holds_its_parts() -> None:
    stack = shapes("encoder", SMALL, PAPER)
    for name, shape in shapes("encoder_layer", SMALL, PAPER).items():
        assert stack[f"layers.0.{name}"] == stack[f"layers.1.{name}"] == shape
    model = shapes("model", SMALL, PAPER)
    assert {f"encoder.{name}" for name in stack} < set(model)
    final = shapes("encoder", SMALL, PAPER.but(final_norm="present"))
    assert set(final) - set(stack) == {"norm.gain", "norm.bias"}


@pytest.mark.parametrize(
    ("option", "twins"),
    [
        (
            "all-three",
            {
                "target_embedding.weight": "source_embedding.weight",
                "generator.weight": "source_embedding.weight",
            },
        ),
        ("target-and-output", {"generator.weight": "target_embedding.weight"}),
        ("embeddings", {"target_embedding.weight": "source_embedding.weight"}),
        ("none", {}),
    ],
)
def test_tying(option: str, twins: dict[str, str]) -> None:
    choices = PAPER.but(tying=option)
    assert tied("model", SHARED, choices) == twins
    apart = count("model", SHARED, PAPER.but(tying="none"))
    assert count("model", SHARED, choices) == apart - len(twins) * 11 * 6


def test_shared_norms_are_one_per_stack() -> None:
    choices = PAPER.but(norm_sharing="shared", tying="none", final_norm="present")
    twins = tied("model", SMALL, choices)
    norms = [name for name in shapes("model", SMALL, choices) if "_norm." in name]
    assert len(norms) == 2 * 2 * (2 + 3)  # gain and bias, two layers, sublayers of both stacks
    assert set(twins.values()) == {
        f"{stack}.layers.0.self_attention_norm.{leaf}"
        for stack in ("encoder", "decoder")
        for leaf in ("gain", "bias")
    }
    assert set(norms) == set(twins) | set(twins.values())


@pytest.mark.parametrize("name", ["encoder_layer", "decoder", "encoder"])
def test_a_stack_alone_shares_its_norms_too(name: str) -> None:
    choices = PAPER.but(norm_sharing="shared")
    norms = [one for one in shapes(name, SMALL, choices) if "_norm." in one]
    assert len(norms) - len(tied(name, SMALL, choices)) == 2


@pytest.mark.parametrize("component", COMPONENTS)
def test_draws_fit_and_keep_ties(component: str, rng: np.random.Generator) -> None:
    choices = BIASED.but(norm_sharing="shared", positional_encoding="learned")
    drawn = draw(component, SHARED, choices, rng)
    table = shapes(component, SHARED, choices)
    assert {name: array.shape for name, array in drawn.items()} == table
    assert list(drawn) == list(table)
    twins = tied(component, SHARED, choices)
    for name, twin in twins.items():
        assert (drawn[name] == drawn[twin]).all()
    alone = [array.tobytes() for name, array in drawn.items() if name not in twins]
    assert len(set(alone)) == len(alone)


def test_draws_are_short_decimals_away_from_initial_values(rng: np.random.Generator) -> None:
    drawn = draw("encoder_layer", SMALL, BIASED, rng, decimals=2)
    for name, array in drawn.items():
        assert (np.round(array, 2) == array).all(), name
        assert not np.all(array == array.flat[0]), name


def test_draws_of_large_components_have_the_same_mean_and_deviation() -> None:
    sizes = BASE.but(source_vocabulary=9, target_vocabulary=9, layers=1)
    choices = PAPER.but(tying="embeddings")
    drawn = draw("model", sizes, choices, np.random.default_rng(3), scale=2.0)
    assert all(drawn[name] is drawn[twin] for name, twin in tied("model", sizes, choices).items())
    for name, array in drawn.items():
        gain = name.endswith("gain")
        deviation = 0.5 if gain else 2 / array.shape[-1] ** 0.5 if array.ndim > 1 else 1
        assert np.std(array) == pytest.approx(deviation, rel=0.1), name
        assert np.mean(array) == pytest.approx(float(gain), abs=0.3 * deviation), name
        assert (np.round(array, 3) == array).all()


def test_draws_follow_their_seed_and_scale() -> None:
    def one(seed: int, scale: float = 1.0) -> dict[str, np.ndarray]:
        return draw("feed_forward", BASE, PAPER, np.random.default_rng(seed), scale=scale)

    name = "inner.weight"
    assert (one(3)[name] == one(3)[name]).all()
    assert (one(3)[name] != one(5)[name]).any()
    assert one(3)[name].std() == pytest.approx(512**-0.5, rel=0.01)
    assert one(3, 7.0)[name].std() == pytest.approx(7 * 512**-0.5, rel=0.01)


def test_matrices_gains_and_biases_are_drawn_in_turn_from_one_stream() -> None:
    normal = np.random.default_rng(11).normal(size=(5 * 6 + 5,))
    inner = draw("feed_forward", SMALL, PAPER, np.random.default_rng(11))
    weight = (normal[:30] / np.sqrt(6)).reshape(5, 6)
    np.testing.assert_array_equal(inner["inner.weight"], np.round(weight, 3))
    np.testing.assert_array_equal(inner["inner.bias"], np.round(normal[30:], 3))
    norm = draw("layer_norm", SMALL, PAPER, np.random.default_rng(11))
    np.testing.assert_array_equal(norm["gain"], np.round(1.0 + 0.5 * normal[:6], 3))
    np.testing.assert_array_equal(norm["bias"], np.round(normal[6:12], 3))


def test_a_table_of_tokens_is_as_wide_as_the_model() -> None:
    assert shapes("embedding", SMALL, PAPER) == {"weight": (11, 6)}


def test_a_learned_table_has_the_rows_that_an_offset_skips() -> None:
    sizes = SMALL.but(max_length=5)
    for option in ("learned", "learned-scaled"):
        choices = PAPER.but(positional_encoding=option, position_offset=2)
        rows = {"weight": (7, sizes.d_model)}
        assert shapes("positional_encoding", sizes, choices) == rows
    assert shapes("positional_encoding", sizes, PAPER.but(position_offset=2)) == {}


def test_embedding_norms_are_a_pair_of_their_own() -> None:
    choices = PAPER.but(embedding_norm="present", norm_sharing="shared")
    added = shapes("model", SMALL, choices).keys() - shapes("model", SMALL, PAPER).keys()
    wanted = {
        f"{s}_embedding_norm.{leaf}" for s in ("source", "target") for leaf in ("gain", "bias")
    }
    assert added == wanted
    assert not wanted & tied("model", SMALL, choices).keys()


def test_tied_embeddings_need_one_vocabulary() -> None:
    options = ("all-three", "target-and-output", "embeddings", "none")
    needed = {one: one_vocabulary(PAPER.but(tying=one)) for one in options}
    assert needed == {
        "all-three": True,
        "target-and-output": False,
        "embeddings": True,
        "none": False,
    }


def test_numbers_of_a_shared_norm_are_counted_once() -> None:
    separate, shared = (
        count("encoder", SMALL, PAPER.but(norm_sharing=one)) for one in ("separate", "shared")
    )
    norms, numbers = 2 * SMALL.layers, 2 * SMALL.d_model  # gain and bias
    assert separate - shared == (norms - 1) * numbers
