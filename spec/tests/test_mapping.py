"""The parameter map: views that write through, nested tables, and names that are not there."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attentest_spec.mapping import Place, Table, locate, nested


def test_a_plain_place_is_the_array_itself() -> None:
    stored = np.arange(6.0).reshape(2, 3)
    assert Place("w").view(stored) is stored


def test_a_transposed_place_turns_the_array_and_writes_through() -> None:
    stored = np.zeros((3, 5))
    view = Place("w", transpose=True).view(stored)
    assert view.shape == (5, 3)
    view[4, 1] = 7.0
    assert stored[1, 4] == 7.0


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_packed_place_is_one_slice_of_the_rows(index: int) -> None:
    stored = np.arange(30.0).reshape(6, 5)
    view = Place("w", part=(index, 3)).view(stored)
    assert (view == stored[2 * index : 2 * index + 2]).all()
    view[:] = -1.0
    assert (stored == -1.0).sum() == 10


def test_a_packed_and_transposed_place_is_a_slice_of_the_outputs() -> None:
    stored = np.arange(42.0).reshape(7, 6)  # seven inputs, three packed outputs of two
    view = Place("w", part=(1, 3), transpose=True).view(stored)
    assert (view == stored[:, 2:4].T).all()


def test_a_packed_bias() -> None:
    assert Place("b", part=(2, 3)).view(np.arange(6.0)).tolist() == [4.0, 5.0]


def test_gain_stored_minus_one_is_read_in_full() -> None:
    own = {"gamma": np.array([0.0, -1.0, 0.5])}
    place = Place("gamma", plus=1.0)
    assert place.read(own).tolist() == [1.0, 0.0, 1.5]
    assert place.gradient(own).tolist() == [0.0, -1.0, 0.5]
    place.write(own, np.array([2.0, 1.0, -3.0]))
    assert own["gamma"].tolist() == [1.0, 0.0, -4.0]


def test_views_of_tensors_write_through() -> None:
    stored = torch.zeros(7, 6)
    Place("w", part=(2, 3), transpose=True).view(stored).copy_(torch.ones(2, 7))
    assert stored.sum().item() == 14
    assert stored[:, 4:].sum().item() == 14


def test_an_entry_serves_all_names_that_begin_with_it() -> None:
    table = {"query": "linears.0", "output": "linears.3"}
    assert locate("query.weight", table) == Place("linears.0.weight")
    assert locate("output.bias", table) == Place("linears.3.bias")


def test_the_longest_entry_wins_in_any_order() -> None:
    table: Table = {"query": "linears.0", "query.bias": Place("packed", part=(0, 3))}
    assert locate("query.bias", table) == Place("packed", part=(0, 3))
    assert locate("query.bias", dict(reversed(list(table.items())))) == Place("packed", part=(0, 3))
    assert locate("query.weight", table) == Place("linears.0.weight")


def test_a_star_carries_the_number_over() -> None:
    table = {"layers.*.norm.gain": "blocks.*.ln.weight", "layers.*": "blocks.*"}
    assert locate("layers.12.norm.gain", table) == Place("blocks.12.ln.weight")
    assert locate("layers.0.inner.weight", table) == Place("blocks.0.inner.weight")


def test_a_number_of_its_own_wins_over_a_star() -> None:
    table = {"layers.*": "blocks.*", "layers.0": "first"}
    assert locate("layers.0.gain", table) == Place("first.gain")
    assert locate("layers.1.gain", table) == Place("blocks.1.gain")


def test_stars_take_their_numbers_in_turn() -> None:
    place = locate("stacks.3.layers.7.gain", {"stacks.*.layers.*": "s.*.l.*"})
    assert place == Place("s.3.l.7.gain")


def test_a_star_stands_for_a_number_alone() -> None:
    with pytest.raises(KeyError, match=r"layers\.last\.gain"):
        locate("layers.last.gain", {"layers.*": "blocks.*"})


@pytest.mark.parametrize("name", ["quer.weight", "query_weight", "queryx.weight", "weight", ""])
def test_name_without_an_entry_is_reported(name: str) -> None:
    with pytest.raises(KeyError, match=f"no entry for {name!r}"):
        locate(name, {"query": "linears.0"})


def test_nesting_moves_both_sides() -> None:
    part: Table = {
        "query": Place("in_proj", part=(0, 3), transpose=True),
        "output": "out_proj",
    }
    assert nested("self_attention", "attn", part) == {
        "self_attention.query": Place("attn.in_proj", part=(0, 3), transpose=True),
        "self_attention.output": Place("attn.out_proj"),
    }
    assert nested("self_attention", "", part)["self_attention.output"] == Place("out_proj")


def test_nested_tables_compose_down_to_a_parameter() -> None:
    attention = {"query": Place("qkv", part=(0, 3))}
    layer = nested("self_attention", "attn", attention) | {"feed_forward.inner": "fc1"}
    model = nested("encoder.layers.*", "enc.*", layer)
    found = locate("encoder.layers.5.self_attention.query.weight", model)
    assert found == Place("enc.5.attn.qkv.weight", part=(0, 3))
    assert locate("encoder.layers.0.feed_forward.inner.bias", model) == Place("enc.0.fc1.bias")


HEADS, WIDTH, MODEL = 3, 2, 5
QKV = np.random.default_rng(0).normal(size=(3, HEADS, WIDTH, MODEL))
"""Query, key and value by packed number, head, column of a head, column of the model."""

STORED = {
    "(n h e) d -> (n h e) d": QKV.reshape(-1, MODEL),
    "(h n e) d -> (n h e) d": QKV.swapaxes(0, 1).reshape(-1, MODEL),
    "(h e n) d -> (n h e) d": QKV.transpose(1, 2, 0, 3).reshape(-1, MODEL),
    "d (n h e) -> (n h e) d": QKV.reshape(-1, MODEL).T.copy(),
    "n h d e -> (n h e) d": QKV.swapaxes(2, 3).copy(),
    "d n h e -> (n h e) d": QKV.transpose(3, 0, 1, 2).copy(),
}


@pytest.mark.parametrize("layout", STORED)
@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_a_layout_reads_and_writes_what_is_packed(
    layout: str, index: int, kind: Callable[[Any], Any]
) -> None:
    own = {"qkv": kind(STORED[layout].copy())}
    place = Place("qkv", part=(index, 3), layout=layout)
    assert (np.asarray(place.read(own, HEADS)) == QKV[index].reshape(-1, MODEL)).all()
    place.write(own, kind(np.ones((HEADS * WIDTH, MODEL))), HEADS)
    assert int((own["qkv"] == 1.0).sum()) == HEADS * WIDTH * MODEL
    assert (np.asarray(place.read(own, HEADS)) == 1.0).all()


def test_an_output_projection_of_separate_heads() -> None:
    stored = np.random.default_rng(0).normal(size=(HEADS, WIDTH, MODEL))
    read = Place("w", layout="h e d -> d (h e)").read({"w": stored}, HEADS)
    assert read.shape == (MODEL, HEADS * WIDTH)
    assert (read[4, 2:4] == stored[1, :, 4]).all()


def test_query_heads_that_share_keys_in_turn() -> None:
    """Of 4 heads over 2 of keys, the heads 0 and 2 read the first one: they come first."""
    own = {"q": np.repeat(np.arange(4.0), 2)[:, None], "o": np.repeat(np.arange(4.0), 2)[None]}
    query = Place("q", layout="(r g e) d -> (g r e) d")
    output = Place("o", layout="d (r g e) -> d (g r e)")
    in_groups = [0, 0, 2, 2, 1, 1, 3, 3]
    assert query.read(own, 4, 2)[:, 0].tolist() == output.read(own, 4, 2)[0].tolist() == in_groups
    for place in (query, output):
        stored = place.read(own, 4, 2).copy()
        place.write(own, stored + 1.0, 4, 2)
        assert (place.read(own, 4, 2) == stored + 1.0).all()
    assert query.read(own, 4, 4)[:, 0].tolist() == own["q"][:, 0].tolist()


def test_axes_of_length_one() -> None:
    place = Place("b", layout="1 h 1 e -> (h e)")
    own = {"b": np.zeros((1, HEADS, 1, WIDTH))}
    place.write(own, np.arange(6.0), HEADS)
    assert own["b"][0, 2, 0].tolist() == [4.0, 5.0]
    assert place.read(own, HEADS).tolist() == list(range(6))


def test_layout_of_both_weight_and_bias() -> None:
    place = locate(
        "key.bias", {"key": Place("qkv", part=(1, 3), layout="(h n e) ... -> (n h e) ...")}
    )
    assert place.name == "qkv.bias"
    assert place.read({"qkv.bias": np.arange(12.0)}, 2).tolist() == [2, 3, 8, 9]


def test_a_star_that_is_no_layer_is_every_head() -> None:
    place = locate("layers.1.query.weight", {"layers.*.query": "blocks.*.heads.*.q"})
    own = {f"blocks.1.heads.{n}.q.weight": np.full((2, 5), float(n)) for n in (10, 2, 0)}
    own["blocks.0.heads.0.q.weight"] = np.full((2, 5), -1.0)
    assert place.read(own)[:, 0].tolist() == [0, 0, 2, 2, 10, 10]
    place.write(own, np.arange(30.0).reshape(6, 5))
    assert (
        own["blocks.1.heads.10.q.weight"].tolist() == np.arange(20.0, 30.0).reshape(2, 5).tolist()
    )
    assert (own["blocks.0.heads.0.q.weight"] == -1.0).all()


def test_one_array_is_read_as_it_is() -> None:
    own = {"w": np.arange(10.0).reshape(2, 5)}
    assert Place("w").read(own) is own["w"]


def test_a_star_may_stand_for_two_heads() -> None:
    own = {f"heads.{n}.q": np.full((1, 5), float(n)) for n in (0, 1)}
    assert Place("heads.*.q").read(own).tolist() == [[0.0] * 5, [1.0] * 5]


def test_without_heads_and_parts_there_is_one_of_each() -> None:
    place, own = Place("w", layout="(h n e) d -> (e n h) d"), {"w": np.arange(8.0).reshape(4, 2)}
    assert (place.read(own) == own["w"]).all()
    assert place.view(own["w"]).shape == (4, 1, 1, 2)
    place.write(own, np.arange(8.0).reshape(4, 2) + 1.0)
    assert own["w"].tolist() == (np.arange(8.0).reshape(4, 2) + 1.0).tolist()


def test_a_span_is_the_rows_of_one_of_three_with_fewer_key_heads() -> None:
    stored = np.arange(16.0)[:, None]  # 4 query heads and 2 of keys and values, 2 wide
    found = {name: Place("w", span=name).read({"w": stored}, 4, 2) for name in _SPANS}
    assert [one[0, 0] for one in found.values()] == [0, 8, 12]
    assert [len(one) for one in found.values()] == [8, 4, 4]
    Place("w", span="value").write({"w": stored}, np.zeros((4, 1)), 4, 2)
    assert stored[11, 0] == 11
    assert not stored[12:].any()
    even = np.arange(6.0)[:, None]
    assert Place("w", span="key").read({"w": even}, 2).tolist() == [[2], [3]]


_SPANS = ("query", "key", "value")


def test_number_in_brackets_is_that_of_stacked_parameters() -> None:
    own = {"experts.up": np.arange(24.0).reshape(3, 2, 4), "experts.down": np.zeros((3, 4, 2))}
    table: Table = {
        "experts.*.gate": Place("experts.up[*]", part=(1, 2), transpose=True),
        "experts.*.outer": Place("experts.down[*]"),
    }
    gate = locate("experts.2.gate", table)
    assert gate.stored == "experts.up"
    assert gate.names(own) == ["experts.up"]
    assert gate.read(own).tolist() == own["experts.up"][2].T[2:].tolist()
    outer = locate("experts.1.outer", table)
    outer.write(own, np.ones((4, 2)))
    assert own["experts.down"].sum(axis=(1, 2)).tolist() == [0.0, 8.0, 0.0]


def test_a_parameter_of_another_size_is_refused() -> None:
    own = {"w": np.zeros((2, 3))}
    with pytest.raises(ValueError, match="reshape"):
        Place("w").write(own, np.ones(3))
    assert not own["w"].any()


def test_a_parameter_with_an_axis_of_one_is_written() -> None:
    own = {"w": np.zeros((1, 3))}
    Place("w").write(own, np.arange(3.0))
    assert own["w"].tolist() == [[0.0, 1.0, 2.0]]
