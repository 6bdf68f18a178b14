"""Calls of layers and stacks: their properties and their drawn inputs."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layer_cases import (
    CAUSAL,
    EVERY,
    MEMORY,
    PADDING,
    SOURCE,
    X,
    case,
    gathered,
    seeded,
    subject_of,
)
from oracle_backend import OraclePart, claimed

from attentest.harness.errors import Absent, Violation
from attentest.testing import layer_calls
from attentest.testing.draw import Draw
from attentest.testing.layer_calls import LayerCall
from attentest_spec.contract import Unsupported

# The call


def test_inputs_are_those_of_the_call() -> None:
    encoder, decoder = case(), case("decoder_layer")
    assert encoder.inputs[0] is X
    assert encoder.inputs[1] is PADDING
    assert len(encoder.inputs) == 2
    assert all(a is b for a, b in zip(decoder.inputs, (X, MEMORY, SOURCE, CAUSAL), strict=True))
    assert decoder.decoder_memory is MEMORY
    with pytest.raises(TypeError, match="encoder_layer takes no memory"):
        _ = encoder.decoder_memory


def test_position_counts_that_any_head_shows_to_any_other() -> None:
    heads = np.zeros((2, 2, 4, 4), bool)
    heads[0, 0, 1, 2] = heads[0, 1, 3, 0] = True
    one = case(mask=heads)
    assert one.keep.shape == (2, 4, 4)
    assert {tuple(place) for place in np.argwhere(one.keep)} == {(0, 1, 2), (0, 3, 0)}
    assert one.rows.tolist() == [[True, False, True, False], [False] * 4]
    assert case(mask=None).keep.all()
    assert case(mask=None).rows.shape == (2, 4)
    assert (case().rows == PADDING[:, 0, 0]).all()
    kept = case("decoder_layer").source_keep
    assert kept.shape == (2, 4, 5)
    assert (kept == np.broadcast_to(SOURCE[:, 0], (2, 4, 5))).all()


def test_output_has_the_shape_of_x() -> None:
    assert case().output().shape == X.shape
    with pytest.raises(Violation, match=r"has the shape \(2, 3, 6\), not \(2, 4, 6\)"):
        case(bend=lambda answer, part: answer[:, 1:]).output()


def test_call_with_all_rows_visible() -> None:
    whole = case(mask=CAUSAL)
    assert whole.with_all_visible() is whole
    seen = case().with_all_visible()
    assert seen.rows.all()
    assert seen.mask is not None
    assert seen.mask.shape == (2, 1, 1, 4)
    assert seen.x is X
    assert case(masks=("per-sample",)).with_all_visible().mask.shape == (2, 1, 4, 4)  # type: ignore[union-attr]


@claimed()
def test_mask_that_hides_nothing_is_of_a_supported_kind() -> None:
    for masks, shape in (
        (("padding", "per-sample"), (2, 1, 1, 7)),
        (("per-sample",), (2, 1, 3, 7)),
    ):
        mask = layer_calls.open_mask(subject_of(masks=masks), 2, 3, 7)
        assert mask.shape == shape
        assert mask.dtype == bool
        assert mask.all()


def test_without_a_mask_that_may_hide_nothing_it_is_absent() -> None:
    with pytest.raises(Absent, match=r"^oracle supports none of the needed kinds of mask$"):
        layer_calls.open_mask(subject_of(masks=("causal", "none")), 2, 3, 7)


# Drawn calls


@pytest.mark.parametrize("component", ["encoder", "decoder_layer"])
@EVERY
@given(data=st.data())
@claimed()
def test_drawn_call_is_ready(component: str, data: st.DataObject) -> None:
    subject = subject_of()
    one = layer_calls.draw_call(subject, Draw.of(data.draw, subject), component)
    assert one.probe.component == component
    assert one.probe.parameters
    assert one.probe.sizes.d_model // one.probe.sizes.heads in (3, 4)
    assert one.probe.sizes.layers in (2, 3)
    assert one.probe.sizes.dropout == 0.0
    assert one.x.shape[1:] == (one.x.shape[1], one.probe.sizes.d_model)
    assert (one.memory is None) == (component == "encoder")
    layer_calls.matches_reference(one)


@pytest.mark.proof
def test_drawn_calls_follow_their_arguments() -> None:
    def ask(draw: Draw) -> LayerCall:
        return layer_calls.draw_call(
            draw.subject, draw, "decoder", kinds=("target",), source_kinds=("none",), batch=3,
            lengths=(3, 5), widths=(2,), scale=30.0, layers=1, dropout=0.5, precision="float32",
        )  # fmt: skip

    for one in gathered(ask):
        assert one.x.shape[:2] == (3, 3)
        assert one.decoder_memory.shape[:2] == (3, 5)
        assert one.source_mask is None
        assert one.mask is not None
        assert one.mask.shape == (3, 1, 3, 3)
        assert not one.mask[:, 0][:, *np.triu_indices(3, 1)].any()
        assert one.probe.sizes.d_model == 2 * one.probe.sizes.heads
        assert one.probe.sizes.layers == 1
        assert one.probe.sizes.dropout == 0.5
        assert one.probe.precision == "float32"
        for values in (one.x, one.decoder_memory, *one.probe.parameters.values()):
            assert (values == values.astype(np.float32)).all()
        assert np.abs(one.x).max() > 10 > np.abs(one.decoder_memory).max()


@pytest.mark.proof
def test_drawn_lengths_and_masks() -> None:
    found = gathered(lambda draw: layer_calls.draw_call(draw.subject, draw, "decoder_layer"))
    assert {one.x.shape[1] for one in found} == set(range(1, 7))
    assert {one.decoder_memory.shape[1] for one in found} == set(range(1, 7))
    assert {one.x.shape[0] for one in found} >= {1, 2, 3}
    assert any(one.mask is None for one in found)
    assert any(one.source_mask is None for one in found)
    assert {one.source_mask.shape[1:3] for one in found if one.source_mask is not None} == {(1, 1)}
    hiding = gathered(
        lambda draw: layer_calls.draw_call(
            draw.subject, draw, "decoder_layer", hiding=True, shortest=1
        )
    )
    assert {one.x.shape[1] for one in hiding} == set(range(2, 7))
    assert {one.decoder_memory.shape[1] for one in hiding} == set(range(2, 7))
    assert all(one.mask is not None and one.source_mask is not None for one in hiding)
    longer = gathered(
        lambda draw: layer_calls.draw_call(draw.subject, draw, "encoder_layer", shortest=4)
    )
    assert {one.x.shape[1] for one in longer} == {4, 5, 6}


@pytest.mark.proof
def test_drawn_masks_are_of_the_requested_kinds() -> None:
    def ask(component: str, **kinds: Any) -> list[LayerCall]:
        def drawn(draw: Draw) -> LayerCall:
            return layer_calls.draw_call(draw.subject, draw, component, lengths=(3, 4), **kinds)

        return gathered(drawn)

    either = ask("encoder_layer", kinds=("target", "padding"), hiding=True)
    assert {one.mask.shape[1:] for one in either if one.mask is not None} == {(1, 1, 3), (1, 3, 3)}
    assert all(one.mask is not None for one in either)
    hiding = ask("encoder_layer", kinds=("target", "none"), hiding=True)
    assert all(one.mask is not None for one in hiding)
    heads = ask("decoder", source_kinds=("per-head",))
    for one in heads:
        assert one.source_mask is not None
        assert one.source_mask.shape == (len(one.x), one.probe.sizes.heads, 3, 4)
    hundredths = np.concatenate([np.round(one.x * 100).ravel() for one in heads])
    assert (hundredths % 2).any()  # and so not drawn at twice the scale


@pytest.mark.proof
def test_without_a_map_a_bare_part_will_do() -> None:
    def ask(draw: Draw) -> LayerCall:
        return layer_calls.draw_call(
            draw.subject, draw, "encoder_layer", mapped=False, precision="float32"
        )

    assert all(one.probe.parameters for one in gathered(ask))
    assert all(one.probe.precision == "float32" for one in gathered(ask))


class Mapless(OraclePart):
    """A bare callable: it says that it has no parameter map."""

    def export(self) -> Any:
        raise Unsupported("no parameter map")

    def load(self, parameters: Any) -> None:
        raise Unsupported("no parameter map")


def test_map_is_demanded_unless_a_bare_part_will_do() -> None:
    subject = subject_of(part=Mapless)
    bare = layer_calls.draw_call(subject, seeded(subject), "encoder_layer", mapped=False)
    assert bare.probe.parameters == {}
    with pytest.raises(Absent, match="no parameter map"):
        layer_calls.draw_call(subject, seeded(subject), "encoder_layer")


def test_depths_stay_inside_the_limits() -> None:
    assert set(gathered(layer_calls.draw_depth)) == {2, 3}
    assert set(gathered(layer_calls.draw_depth, layers=2)) == {2}
    assert set(gathered(layer_calls.draw_depth, layers=1)) == {1}
    assert set(gathered(layer_calls.draw_depth, layers=9)) == {2, 3}


def test_target_mask_is_causal_and_hides_a_pad() -> None:
    for mask in gathered(lambda draw: layer_calls.target_mask(draw, 2, 4)):
        assert mask.shape == (2, 1, 4, 4)
        assert mask.dtype == bool
        assert not (mask & ~CAUSAL).any()
        assert mask[..., 0].all()
        hidden = (~mask[:, 0, -1]).sum(axis=-1)
        assert hidden[0] >= 1
        columns = mask[:, 0, -1]
        assert (columns[1] & ~columns[0]).any()
        assert (mask[:, 0] == (columns[:, None] & CAUSAL[0])).all()
    assert layer_calls.target_mask(seeded(subject_of()), 3, 1).all()
    others = np.concatenate(gathered(lambda draw: layer_calls.target_mask(draw, 2, 4)[1, 0, -1:]))
    assert {tuple(row) for row in others[:, 1:]} >= {(True, False, True), (False, True, False)}


def test_padding_of_a_target_is_anywhere_after_its_first_token() -> None:
    bare = SimpleNamespace(random=np.zeros)  # no other pad than the one that has to be there
    masks = gathered(lambda draw: layer_calls.target_mask(replace(draw, rng=bare), 1, 4))  # type: ignore[arg-type]
    rows = {tuple(mask[0, 0, -1].tolist()) for mask in masks}
    assert rows == {(True, *(place != hidden for place in (1, 2, 3))) for hidden in (1, 2, 3)}
    assert layer_calls.target_mask(seeded(subject_of()), 1, 2)[0, 0, 1].tolist() == [True, False]
