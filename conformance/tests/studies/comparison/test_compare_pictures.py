"""The pictures of a comparison: what a backend computes, the same question to all."""

import json
from dataclasses import replace

import numpy as np
import pytest
from compared import ONE_LAYER, known, part_of, plain
from oracle_backend import OracleBackend

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.harness.oracle import Reference
from attentest.studies.comparison.account import Account
from attentest.studies.comparison.compare import side_by_side
from attentest.studies.comparison.pictures import ATTENTION, MASK, POSITIONS, Picture, pictures
from attentest_spec import PAPER, Choices, Limits


def drawn(backend, **choices) -> dict[str, Picture]:
    return {one.title: one for one in pictures("some", backend, Choices(**choices))}


ORACLE = drawn(Reference(PAPER))


def test_masks_attention_and_positions_are_drawn():
    kinds = [one.kind for one in ORACLE.values()]
    assert (kinds.count(MASK), kinds.count(ATTENTION), kinds.count(POSITIONS)) == (3, 5, 1)
    for one in ORACLE.values():
        assert np.shape(one.values) == (len(one.rows), len(one.columns))


def test_masks_are_those_of_the_tokens():
    assert ORACLE["padding mask of the source"].values == ((1, 1, 1, 1, 0, 0),)
    assert ORACLE["padding mask of the source"].columns == ("5", "3", "8", "2", "pad", "pad")
    np.testing.assert_array_equal(ORACLE["causal mask"].values, np.tri(5))
    np.testing.assert_array_equal(ORACLE["target mask"].values, np.tri(5) * [1, 1, 1, 1, 0])


@pytest.mark.parametrize("side", ["source", "target"])
def test_heads_are_weights_over_what_may_be_seen(side):
    heads = [np.array(ORACLE[f"{side} attention, head {number}"].values) for number in (1, 2)]
    for head in heads:
        np.testing.assert_allclose(head.sum(axis=-1), 1.0, atol=1e-3)
        assert (head[:, -1] == 0).all()
    assert not np.allclose(*heads)
    if side == "target":
        assert (np.triu(heads[0], 1) == 0).all()


@pytest.mark.parametrize(
    ("option", "value"), [("uniform", 0.1667), ("zero", 0.0), ("nan", None), ("unspecified", None)]
)
def test_a_query_that_may_attend_to_nothing_shows_what_it_does(option, value):
    choices = {"fully_masked_row": option}
    found = drawn(Reference(Choices(**choices)), **choices)
    assert found["attention where every key is hidden"].values == ((value,) * 6,)


def test_positions_are_added_to_zeros():
    values = np.array(ORACLE["positions"].values)
    assert values.shape == (32, 12)
    np.testing.assert_allclose(values[:, 0], np.sin(np.arange(32)), atol=1e-4)
    np.testing.assert_allclose(values[:, 1], np.cos(np.arange(32)), atol=1e-4)


@pytest.mark.parametrize("specimen", REFERENCE_MODELS)
def test_a_sound_backend_draws_what_the_oracle_draws(specimen):
    backend = reference_backend(REFERENCE_MODELS[specimen], {"fully_masked_row": "zero"})
    choices = Choices.of(backend.choices)
    mine, right = (pictures("x", one, choices) for one in (backend, Reference(choices)))
    assert [one.title for one in mine] == [one.title for one in right]
    for one, other in zip(mine, right, strict=True):
        np.testing.assert_allclose(
            np.array(one.values, float), np.array(other.values, float), rtol=2e-4, atol=1e-12
        )


def test_missing_component_is_left_out():
    assert set(drawn(part_of(plain(), "positional_encoding"))) == {"positions"}
    low = replace(plain(), limits=Limits(precisions=("float32",)))
    assert drawn(low) == {}


def test_limits_are_kept():
    low = drawn(Reference(PAPER, limits=Limits(length=3, heads=1, masks=("none", "padding"))))
    assert np.shape(low["positions"].values) == (3, 12)
    assert "source attention, head 1" in low
    assert not {"source attention, head 2", "target attention, head 1"} & set(low)


@pytest.mark.parametrize(
    "bend",
    [
        lambda answer, part: np.zeros((2, 2)),
        lambda answer, part: np.array(3.0),
        lambda answer, part: 1 / 0,
    ],
)
def test_picture_that_a_backend_cannot_compute_is_left_out(bend):
    assert drawn(OracleBackend(bend)) == {}


def test_a_comparison_has_the_pictures_of_all_under_their_labels():
    some = part_of(plain(), "attention", "padding_mask", "positional_encoding")
    found = side_by_side({"a": known(some), "b": known(some)}, ONE_LAYER)
    ours = {name: [p for p in found.pictures if p.backend == name] for name in ("a", "b")}
    assert ours["a"] == [replace(one, backend="a") for one in ours["b"]]
    told = json.loads(json.dumps(found.as_dict()))["pictures"]
    assert set(told[0]) == {"backend", "kind", "title", "values", "rows", "columns"}
    assert len(json.dumps(told)) < 20_000


def test_an_account_is_read_back_with_its_pictures():
    account = Account.of(part_of(plain(), "attention", "padding_mask"))
    assert account.pictures
    assert Account.from_dict(json.loads(json.dumps(account.as_dict()))).pictures == account.pictures
