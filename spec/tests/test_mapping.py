"""The parameter map: views that write through, nested tables, and names that are not there."""

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


def test_a_star_stands_for_a_number_alone() -> None:
    with pytest.raises(KeyError, match=r"layers\.last\.gain"):
        locate("layers.last.gain", {"layers.*": "blocks.*"})


@pytest.mark.parametrize("name", ["quer.weight", "query_weight", "queryx.weight", "weight", ""])
def test_a_name_without_an_entry_is_told(name: str) -> None:
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
