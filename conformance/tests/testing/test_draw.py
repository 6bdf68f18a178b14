"""Drawn inputs: every documented value, no other one, within the limits."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_backend import OracleBackend

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.testing.draw import DEEP, LONG, SCALES, Draw
from attentest_spec import Limits, Sizes
from attentest_spec.contract import MASK_KINDS
from attentest_spec.parameters import draw as draw_parameters

T = TypeVar("T")


def subject(about: dict[str, Any]) -> Subject:
    """Return a subject with the limits and choices in `about`."""
    limits = {name: about[name] for name in about if name in Limits.__annotations__}
    choices = {name: about[name] for name in about if name not in limits}
    return Subject(OracleBackend(choices=choices, limits=Limits(**limits)))


def examples(action: Callable[[st.DataObject], None]) -> None:
    """Run `action` on many examples, or on all where there are few."""
    several = settings(max_examples=300, database=None, deadline=None, derandomize=True)
    several(given(st.data())(action))()


def drawing(action: Callable[[Draw], T], **about: Any) -> list[T]:
    """Return what `action` draws, or the text of the absence that it ends in."""
    found: list[Any] = []
    one = subject(about)

    def example(data: st.DataObject) -> None:
        try:
            found.append(action(Draw(data.draw, one, np.random.default_rng(0))))
        except Absent as absence:
            found.append(str(absence))

    examples(example)
    return found


def seeded(**about: Any) -> Draw:
    """Return a source of bulk numbers alone, which come from one seed."""
    return Draw(None, subject(about), np.random.default_rng(11))  # type: ignore[arg-type]


# Sizes and kinds


def test_every_example_has_a_stream_of_its_own() -> None:
    firsts: list[float] = []
    one = subject({})

    def example(data: st.DataObject) -> None:
        draw = Draw.of(data.draw, one)
        firsts.append(draw.rng.random())

    examples(example)
    assert len(set(firsts)) > 100
    assert np.random.default_rng(0).random() in firsts  # what failing examples shrink to


def test_whole_numbers_reach_both_ends() -> None:
    assert set(drawing(lambda draw: draw.integer(2, 4))) == {2, 3, 4}


def test_options_are_all_chosen() -> None:
    assert set(drawing(lambda draw: draw.choose(("a", "b")))) == {"a", "b"}


def test_lengths_stay_inside_the_limits() -> None:
    assert set(drawing(lambda draw: draw.length())) == set(range(1, 7))
    assert set(drawing(lambda draw: draw.length(3, 8))) == set(range(3, 9))
    assert set(drawing(lambda draw: draw.length(), length=4)) == {1, 2, 3, 4}
    assert set(drawing(lambda draw: draw.length(4), length=4)) == {4}
    assert set(drawing(lambda draw: draw.length(1, 2), length=4)) == {1, 2}
    told = {"oracle is limited to length 4; 5 is needed"}
    assert set(drawing(lambda draw: draw.length(5), length=4)) == told


def test_two_lengths_are_unlike_in_either_order() -> None:
    short = {(a, b) for a in (1, 2, 3, 4) for b in range(a + 1, 7)}
    both = short | {pair[::-1] for pair in short}
    assert set(drawing(lambda draw: draw.lengths())) == both
    told = "oracle is limited to length {}; two are needed"
    assert set(drawing(lambda draw: draw.lengths(), length=2)) == {(1, 2), (2, 1), told.format(2)}
    assert set(drawing(lambda draw: draw.lengths(), length=1)) == {told.format(1)}


def test_samples_are_few() -> None:
    assert set(drawing(lambda draw: draw.batch())) == {1, 2, 3, 5}


def test_heads_stay_inside_the_limits() -> None:
    assert set(drawing(lambda draw: draw.heads())) == {1, 2, 3, 8}
    assert set(drawing(lambda draw: draw.heads(2))) == {2, 3, 8}
    assert set(drawing(lambda draw: draw.heads(), heads=2)) == {1, 2}
    assert set(drawing(lambda draw: draw.heads(2), heads=2)) == {2}
    assert set(drawing(lambda draw: draw.heads(2), heads=1)) == {"oracle is limited to 1 heads"}


def test_several_heads_are_two_or_more_where_there_can_be() -> None:
    assert set(drawing(lambda draw: draw.several())) == {2, 3, 8}
    assert set(drawing(lambda draw: draw.several(), heads=2)) == {2}
    assert set(drawing(lambda draw: draw.several(), heads=1)) == {1}
    assert seeded().most_heads() == 8
    assert seeded(heads=3).most_heads() == 3
    assert seeded(heads=9).most_heads() == 8


def test_layers_stay_inside_the_limits() -> None:
    assert set(drawing(lambda draw: draw.layers())) == {1, 2, 3}
    assert set(drawing(lambda draw: draw.layers(2, 5))) == {2, 3, 4, 5}
    assert set(drawing(lambda draw: draw.layers(), layers=2)) == {1, 2}
    assert set(drawing(lambda draw: draw.layers(2), layers=2)) == {2}
    told = {"oracle is limited to 2 layer(s); 3 are needed"}
    assert set(drawing(lambda draw: draw.layers(3), layers=2)) == told


def test_long_and_deep_ones_stay_inside_the_limits() -> None:
    assert seeded().long() == LONG
    assert seeded().long(40) == 40
    assert seeded(length=17).long() == seeded(length=17).long(40) == 17
    assert seeded().deepest() == DEEP
    assert seeded(layers=2).deepest() == 2
    assert seeded(layers=9).deepest() == DEEP
    assert seeded().several_layers() == seeded(layers=9).several_layers() == 2
    assert seeded(layers=1).several_layers() == 1


def test_sizes_are_unlike_where_they_are_free() -> None:
    found = drawing(lambda draw: draw.sizes())
    assert {one.d_model // one.heads for one in found} == {2, 3, 4}
    assert all(one.d_model % one.heads == 0 for one in found)
    assert {one.heads for one in found} == {1, 2, 3, 8}
    assert {one.d_ff for one in found} == {5, 7}
    assert {one.layers for one in found} == {1, 2}
    told = {(one.source_vocabulary, one.target_vocabulary) for one in found}
    assert told == {(11, 11)}
    assert {(one.source_pad, one.target_pad, one.dropout) for one in found} == {(3, 5, 0.0)}


def test_sizes_that_are_fixed_stay_so() -> None:
    fixed = {"layers": 4, "d_ff": 9, "dropout": 0.5, "source_pad": 0}
    found = drawing(lambda draw: draw.sizes(heads=2, head_width=5, **fixed))
    assert set(found) == {
        Sizes(
            d_model=10, heads=2, source_vocabulary=11, target_vocabulary=11, target_pad=5, **fixed
        )
    }


@pytest.mark.parametrize("tying", ["none", "target-and-output"])
def test_vocabularies_are_unlike_unless_they_are_one(tying: str) -> None:
    found = drawing(lambda draw: draw.sizes(), tying=tying)
    assert {(one.source_vocabulary, one.target_vocabulary) for one in found} == {(11, 13)}


def test_magnitudes() -> None:
    assert set(drawing(lambda draw: draw.scale())) == set(SCALES)


# Bulk numbers


def test_floats_are_signed_short_decimals() -> None:
    normal = np.round(np.random.default_rng(11).normal(size=(3, 4)), 2)
    assert (seeded().floats(3, 4) == normal).all()
    assert (seeded().floats(3, 4, scale=30.0) == normal * 30.0).all()
    single = normal.astype(np.float32).astype(np.float64)
    assert (seeded().floats(3, 4, precision="float32") == single).all()
    assert (single != normal).any()
    draw = seeded()
    draw.subject.precision = "float32"
    assert (draw.floats(3, 4) == single).all()


@pytest.mark.parametrize("scale", [{}, {"scale": 30.0}])
def test_parameters_are_those_of_the_spec_under_the_declared_choices(scale: Any) -> None:
    draw = seeded(projection_bias="present")
    expected = draw_parameters(
        "multi_head_attention", Sizes(), draw.subject.choices, np.random.default_rng(11), **scale
    )
    assert "query.bias" in expected
    found = draw.parameters("multi_head_attention", Sizes(), **scale)
    assert list(found) == list(expected)
    assert all((found[name] == values).all() for name, values in expected.items())


def test_parameters_are_rounded_to_the_precision() -> None:
    asked = seeded().parameters("layer_norm", Sizes(), precision="float16")
    draw = seeded()
    draw.subject.precision = "float16"
    own, plain = draw.parameters("layer_norm", Sizes()), seeded().parameters("layer_norm", Sizes())
    for name, values in plain.items():
        rounded = values.astype(np.float16).astype(np.float64)
        assert (asked[name] == rounded).all()
        assert (own[name] == rounded).all()
        assert (rounded != values).any()


# Masks


@pytest.mark.parametrize("keys", [1, 2, 3, 5])
def test_every_row_keeps_a_key_and_hides_one_if_it_has_two(keys: int) -> None:
    mask = seeded().keep(40, 20, keys)
    assert mask.dtype == bool
    assert mask.shape == (40, 20, keys)
    kept = mask.sum(axis=-1)
    most = max(keys - 1, 1)
    assert set(kept.flat) == set(range(1, most + 1))
    assert (mask.any(axis=(0, 1))).all()
    assert len(np.unique(mask.reshape(-1, keys), axis=0)) == (2**keys - 2 if keys > 1 else 1)


class Fixed:
    """A stream whose shares are all `share`, and whose whole numbers are drawn as ever."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.integers = np.random.default_rng(11).integers

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.full(shape, self.share)


def test_hidden_key_of_a_row_lies_at_any_distance_from_the_visible_one() -> None:
    full, bare = (Draw(None, subject({}), Fixed(share)) for share in (0.0, 1.0))  # type: ignore[arg-type]
    hidden, kept = (~full.keep(50, 5)).argmax(axis=-1), bare.keep(50, 5).argmax(axis=-1)
    assert set(kept) == {0, 1, 2, 3, 4}
    assert set((hidden - kept) % 5) == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("padding", (2, 1, 1, 7)), ("per-sample", (2, 1, 5, 7)), ("per-head", (2, 3, 5, 7))],
)
def test_masks_of_a_kind_have_its_shape(kind: str, shape: tuple[int, ...]) -> None:
    mask = seeded().mask(kind, 2, 3, 5, 7)
    assert mask is not None
    assert mask.shape == shape
    assert mask.dtype == bool
    assert mask.any(axis=-1).all()
    assert not mask.all(axis=-1).any()


def test_causal_mask_and_none() -> None:
    mask = seeded().mask("causal", 2, 3, 4, 4)
    assert mask is not None
    assert mask.dtype == bool
    assert mask.shape == (1, 1, 4, 4)
    assert (mask[0, 0] == np.tri(4, dtype=bool)).all()
    assert seeded().mask("none", 2, 3, 4, 4) is None


def test_kinds_of_masks_are_those_that_are_supported() -> None:
    assert set(drawing(lambda draw: draw.mask_kind())) == set(MASK_KINDS)
    assert set(drawing(lambda draw: draw.mask_kind(hiding=True))) == set(MASK_KINDS) - {"none"}
    some = ("none", "causal")
    assert set(drawing(lambda draw: draw.mask_kind(kinds=some))) == set(some)
    assert set(drawing(lambda draw: draw.mask_kind(kinds=some, hiding=True))) == {"causal"}
    assert set(drawing(lambda draw: draw.mask_kind(), masks=some)) == set(some)
    told = {"oracle supports none of the needed kinds of mask"}
    assert set(drawing(lambda draw: draw.mask_kind(kinds=["padding"]), masks=some)) == told
    assert set(drawing(lambda draw: draw.mask_kind(hiding=True), masks=["none"])) == told


def test_supported_kinds_of_masks_keep_their_order() -> None:
    some = ("per-head", "none", "padding")
    assert seeded().mask_kinds(some) == list(some)
    assert seeded(masks=("padding", "per-head")).mask_kinds(some) == ["per-head", "padding"]


def test_differing_masks_hide_another_key_in_each_sample_and_head() -> None:
    kept, hidden = (np.full((3, 2, 2, 4), value) for value in (True, False))
    for mask, wanted in ((kept, lambda key, number: key != number % 4), (hidden, _next)):
        found = seeded().differing(mask)
        for sample, head, query, key in np.ndindex(found.shape):
            assert found[sample, head, query, key] == wanted(key, sample + head)
    assert kept.all()
    assert not hidden.any()


def _next(key: int, number: int) -> bool:
    return key == (number + 1) % 4


def test_differing_masks_leave_the_first_keys() -> None:
    for value in (True, False):
        found = seeded().differing(np.full((3, 1, 1, 4), value), first=2)
        assert (found[..., :2] == value).all()
        assert found[:, 0, 0, 2:].tolist() == [[False, True], [True, False], [False, True]]


def test_differing_padding_at_the_end_stays_there() -> None:
    mask = np.arange(4) < np.array([2, 1, 1, 4])[:, None, None, None]
    padded = seeded(right_padded=("mask",))
    assert padded.differing(mask).sum(axis=-1).ravel().tolist() == [2, 3, 4, 1]
    assert (padded.differing(mask)[..., 1:] <= padded.differing(mask)[..., :-1]).all()
    assert padded.differing(mask, first=1).sum(axis=-1).ravel().tolist() == [2, 3, 4, 2]
    wanted = seeded().differing(mask).tolist()
    assert padded.differing(mask, role="source").tolist() == wanted != mask.tolist()


# Tokens


def test_unevenly_padded_tokens_differ_in_their_padding() -> None:
    draw, tokens = seeded(right_padded=("target",)), np.array([[1, 2, 0, 0], [1, 0, 0, 0]])
    source = draw.unevenly_padded(tokens, 5, 0, role="source")
    assert (source != 0).tolist() == [[False, True, False, False], [True, False, True, False]]
    assert set(draw.unevenly_padded(np.ones((40, 9)), 5, 0, role="source").flat) == set(range(5))
    target = draw.unevenly_padded(tokens, 5, 0, role="target", first=1)
    assert (target != 0).sum(axis=-1).tolist() == [2, 3]


@pytest.mark.parametrize("pad", [0, 3, 6])
def test_tokens_are_every_id_but_the_pad(pad: int) -> None:
    tokens = seeded().tokens(30, 20, 7, pad)
    assert tokens.dtype == np.int64
    assert tokens.shape == (30, 20)
    assert set(tokens.flat) == set(range(7)) - {pad}


SIZES = Sizes(source_vocabulary=7, target_vocabulary=9, source_pad=3, target_pad=5)


def test_source_has_pads_anywhere_and_a_real_token() -> None:
    tokens = seeded().source(400, 4, SIZES)
    assert tokens.shape == (400, 4)
    assert set(tokens.flat) == set(range(7))
    pads = tokens == 3
    assert pads.any(axis=1).all()
    assert not pads.all(axis=1).any()
    assert pads.any(axis=0).all()
    assert not pads.all(axis=0).any()


def test_target_starts_with_a_real_token() -> None:
    tokens = seeded().target(400, 4, SIZES)
    assert tokens.shape == (400, 4)
    assert set(tokens.flat) == set(range(9))
    pads = tokens == 5
    assert not pads[:, 0].any()
    assert pads[:, 1:].any(axis=0).all()
    assert 0.2 < pads[:, 1:].mean() < 0.4
    assert (~pads).all(axis=1).any()


def test_padding_is_at_the_end_alone_where_the_limits_say_so() -> None:
    draw, sizes = seeded(right_padded=("mask", "source", "target")), Sizes(d_model=2, heads=1)
    real = [
        draw.mask("padding", 4, 1, 3, 5)[:, 0, 0],  # type: ignore[index]
        draw.mask("per-sample", 4, 1, 3, 5)[:, 0],  # type: ignore[index]
        draw.source(40, 5, sizes) != sizes.source_pad,
        draw.target(40, 5, sizes) != sizes.target_pad,
    ]
    for keep in real:
        assert keep[..., 0].all()
        assert (keep[..., 1:] <= keep[..., :-1]).all()
        assert not keep[..., -1].all()
