"""Sizes as in use: those of real models, within the limits of a backend."""

from dataclasses import replace

import pytest
from oracle_backend import OracleBackend

from attentest.harness.subject import Subject
from attentest.testing.sizes_in_use import (
    LONG,
    MANY,
    WIDE,
    WIDER,
    WORDS,
    SizesInUse,
    at_sizes_in_use,
)
from attentest_spec import Limits, Sizes

EVERY = (WIDE, WIDER, MANY, LONG, WORDS)


def test_sizes_reach_what_models_have():
    assert max(one.heads for one in EVERY) >= 16
    assert {512, 768} <= {one.width for one in EVERY}
    assert max(one.inner for one in EVERY) > 64
    assert max(one.batch for one in EVERY) >= 33
    assert max(one.length for one in EVERY) >= 600
    assert max(one.ids for one in EVERY) >= 32_000
    assert max(one.layers for one in EVERY) >= 12


@pytest.mark.parametrize("size", EVERY)
def test_sizes_stay_within_limits(size):
    limits = Limits(heads=5, layers=2, length=7, odd_width=False, inner=3)
    subject = Subject(OracleBackend(limits=limits))
    found = size.within(subject)
    assert found.heads <= 5
    assert found.layers <= 2
    assert found.length <= 7
    assert found.width % (2 * found.heads) == 0
    assert size.width - 2 * found.heads < found.width <= size.width
    assert found.sizes(subject).d_ff == 3 * found.width
    assert found.batch == size.batch


@pytest.mark.parametrize("size", EVERY)
def test_sizes_without_limits_are_as_they_are(size):
    assert size.within(Subject(OracleBackend())) == size


def test_heads_as_wide_as_the_model_get_a_narrower_one():
    subject = Subject(OracleBackend(choices={"head_width": "d"}))
    assert WIDE.within(subject) == replace(WIDE, width=128)
    assert MANY.within(subject) == MANY


def test_vocabularies_differ_unless_they_are_one():
    sizes = SizesInUse(ids=20).sizes(Subject(OracleBackend(choices={"tying": "none"})))
    assert (sizes.source_vocabulary, sizes.target_vocabulary) == (20, 22)
    sizes = SizesInUse(ids=20).sizes(Subject(OracleBackend()))
    assert (sizes.source_vocabulary, sizes.target_vocabulary) == (20, 20)


def test_sizes_of_a_part_are_those_of_the_example() -> None:
    example = SizesInUse(batch=3, heads=4, width=24, inner=9, layers=5, length=7, ids=20)
    wide = Subject(OracleBackend(choices={"tying": "none"}))
    assert example.sizes(wide) == Sizes(
        d_model=24,
        heads=4,
        d_ff=9,
        layers=5,
        source_vocabulary=20,
        target_vocabulary=22,
        source_pad=3,
        target_pad=5,
        max_length=7,
    )


def test_small_sizes_are_those_of_a_small_test() -> None:
    assert SizesInUse() == SizesInUse(
        batch=1, heads=2, width=8, inner=7, layers=1, length=4, ids=11
    )


@pytest.mark.parametrize(("width", "found"), [(128, 128), (132, 32), (516, 128)])
def test_widths_from_128_on_are_a_quarter_for_wide_heads(width: int, found: int) -> None:
    subject = Subject(OracleBackend(choices={"head_width": "d"}))
    narrowed = SizesInUse(width=width).within(subject).width
    assert narrowed == found
    assert isinstance(narrowed, int)


def test_each_size_is_one_example_within_the_limits() -> None:
    subject, seen = Subject(OracleBackend(limits=Limits(layers=2))), []
    examples = at_sizes_in_use(lambda *given: seen.append(given), MANY, LONG)
    for number, example in enumerate(examples):
        example(subject, number)  # type: ignore[arg-type]  # the draw is handed on
    assert seen == [(subject, 0, replace(MANY, layers=2)), (subject, 1, LONG)]


@pytest.mark.parametrize("size", EVERY)
@pytest.mark.parametrize(("part", "unit"), [(0.25, 8), (0.4, 10), (0.5, 4), ("whole", 2)])
def test_heads_are_wide_enough_to_turn_pairs_of_columns(size, part, unit):
    choices = {"attention_rotary": "query-and-key", "rotary_width": part}
    found = size.within(Subject(OracleBackend(choices=choices)))
    assert found.heads == size.heads
    assert found.width // found.heads % unit == 0
    assert found.width >= size.width // (2 * size.heads) * 2 * size.heads
