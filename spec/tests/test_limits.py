"""Limits of a backend: the sizes inside them."""

from attentest_spec import Limits, Sizes


def test_sizes_are_fitted_to_the_limits() -> None:
    sizes = Sizes(d_model=5, heads=1, source_pad=3, target_pad=5)
    assert Limits().fitted(sizes) == sizes
    assert Limits(odd_width=False, inner=4).fitted(sizes) == sizes.but(d_model=10, d_ff=40)
    assert Limits(least_width=4).fitted(sizes) == sizes
    assert Limits(least_width=8, inner=4).fitted(sizes) == sizes.but(d_model=10, d_ff=40)
    assert Limits(least_width=4).fitted(sizes.but(d_model=3)) == sizes.but(d_model=6)
    assert Limits(least_head_width=4).fitted(sizes.but(d_model=6, heads=3)).d_model == 12
    assert Limits(least_head_width=4).fitted(sizes) == sizes
    assert Limits(inner_width=2048).fitted(sizes) == sizes.but(d_ff=2048)
    assert Limits(fewest_heads=2).fitted(sizes) == sizes.but(heads=2, d_model=10)
    assert Limits(fewest_heads=2).fitted(sizes.but(d_model=6)) == sizes.but(heads=2, d_model=6)
    assert Limits(fewest_heads=2).fitted(sizes.but(heads=5)) == sizes.but(heads=5)
    assert Limits(one_key_head=True).fitted(sizes.but(heads=5)) == sizes.but(heads=5, kv_heads=1)
    assert Limits(own_pads=False).fitted(sizes) == sizes.but(target_pad=3)
    assert Limits(pad=1).fitted(sizes) == sizes.but(source_pad=1, target_pad=1)
    assert Limits(smoothing=0.1).fitted(sizes) == sizes.but(smoothing=0.1)
    assert Limits(own_vocabularies=False).fitted(sizes) == sizes.but(target_vocabulary=11)


def test_heads_of_an_odd_width_are_doubled_where_no_odd_width_is_taken() -> None:
    limits = Limits(odd_width=False)
    wide = Sizes(d_model=24, heads=8)
    assert limits.fitted(wide) == wide.but(d_model=48)
    assert limits.fitted(wide.but(heads=4)) == wide.but(heads=4)
    assert Limits().fitted(wide) == wide


def test_an_inner_width_may_be_a_fraction_of_the_width() -> None:
    limits = Limits(inner=8 / 3)
    assert [limits.fitted(Sizes(d_model=width)).d_ff for width in (3, 48, 64)] == [8, 128, 170]


def test_an_inner_width_may_be_rounded_up_to_a_multiple() -> None:
    limits = Limits(inner=8 / 3, inner_multiple=32)
    assert [limits.fitted(Sizes(d_model=width)).d_ff for width in (3, 48, 64)] == [32, 128, 192]


def test_masks_of_a_memory_are_those_of_all_where_they_have_no_limit_of_their_own():
    assert Limits(masks=("none", "causal")).masks_of("source_mask") == ("none", "causal")
    limits = Limits(masks=("none", "causal"), memory_masks=("none", "padding"))
    assert limits.masks_of("source_mask") == ("none", "padding")
    assert limits.masks_of("target_mask") == limits.masks_of("mask") == ("none", "causal")
