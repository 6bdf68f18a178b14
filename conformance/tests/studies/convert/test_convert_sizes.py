"""Sizes of a checkpoint: read off its entries, and asked for where none shows them."""

import pytest
from converting import HEADS, SIZES, checkpoint, fused, plain

from attentest.studies.convert import NotConvertible, converted


def test_sizes_are_read_off_the_entries() -> None:
    there = converted(checkpoint(plain()), plain(), fused(), sizes=HEADS)
    wanted = ("layers", "d_model", "heads", "d_ff", "source_vocabulary", "target_vocabulary")
    assert there.checkpoint.sizes == {name: getattr(SIZES, name) for name in wanted}


def test_heads_that_no_entry_shows_are_asked_for() -> None:
    with pytest.raises(NotConvertible, match=r"the model: heads\. Give it, as in --sizes heads=8"):
        converted(checkpoint(plain()), plain(), fused())


def test_heads_as_wide_as_the_model_show_how_many_they_are() -> None:
    wide = plain(head_width="d")
    sizes = SIZES.but(heads=3, d_model=7)
    there = converted(checkpoint(wide, sizes), wide, fused(head_width="d"))
    assert there.checkpoint.sizes["heads"] == 3
    assert there.checkpoint.sizes["d_model"] == 7


def test_given_sizes_that_are_wrong_are_told_by_the_shapes() -> None:
    with pytest.raises(NotConvertible, match=r"source_embedding.weight \(11, 6\), not \(11, 8\)"):
        converted(checkpoint(plain()), plain(), fused(), sizes={"heads": 2, "d_model": 8})
    with pytest.raises(NotConvertible, match="The size heads cannot be 0"):
        converted(checkpoint(plain()), plain(), fused(), sizes={"heads": 0})


def test_sizes_that_the_target_refuses_are_told_in_its_words() -> None:
    with pytest.raises(NotConvertible, match=r"plain cannot be converted: .*6.*4"):
        converted(checkpoint(plain()), plain(), fused(), sizes={"heads": 4})
