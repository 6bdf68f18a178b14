"""Roles inferred from the names of parameters."""

import pytest

from attentest.targets.adapt.parameters.words import beyond, ordinal, projections, words


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("q_proj", ("query",)),
        ("W_Q", ("query",)),
        ("Wq", ("query",)),
        ("to_k", ("key",)),
        ("w_vs", ("value",)),
        ("toqueries", ("query",)),
        ("key.linear", ("key",)),
        ("value_layer", ("value",)),
        ("heads.*.query.weight", ("query",)),
        ("out_proj", ("output",)),
        ("to_out.0", ("output",)),
        ("w_o", ("output",)),
        ("unifyheads", ("output",)),
        ("query_output", ("query",)),
        ("qkv", ("query", "key", "value")),
        ("to_qkv", ("query", "key", "value")),
        ("Wqkv", ("query", "key", "value")),
        ("kqv", ("key", "query", "value")),
        ("query_key_value", ("query", "key", "value")),
        ("to_kv", ("key", "value")),
        ("key_value", ("key", "value")),
        ("linears.0", ()),
        ("c_attn", ()),
        ("fc", ()),
        ("layer2", ()),
    ],
)
def test_which_projections_a_name_says(name, said):
    assert projections(name) == said


def test_words():
    assert words("EncDecAttention.LayerNorm1") == ("enc", "dec", "attention", "layer", "norm", "1")
    assert words("W_q1") == ("w", "q", "1")


def test_a_number_in_an_attribute_and_in_a_list():
    assert ordinal("norm1") == (1, True)
    assert ordinal("norms.2") == (2, False)
    assert ordinal("layer_norm_3.weight") == (3, True)
    assert ordinal("norm") == (None, False)


def test_names_without_what_they_share():
    assert beyond(["a.b.c", "a.b.d.e"]) == ["c", "d.e"]
    assert beyond(["a.b"]) == ["b"]
    assert beyond(["a", "a.b"]) == ["a", "a.b"]
