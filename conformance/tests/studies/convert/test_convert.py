"""Weights carried from one backend over to another: what is exact, and what is refused."""

import re
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from converting import (
    HEADS,
    SIZES,
    changed,
    checkpoint,
    furthest,
    fused,
    plain,
    same,
    without,
)
from oracle_backend import OracleBackend
from own import WHOLE
from proof import share
from torch import Tensor, nn

from attentest.faults.reference_models import Fused, reference_backend
from attentest.studies.convert import Checkpoint, NotConvertible, converted
from attentest.studies.convert.wholes import SETTLED_BY_ENTRIES, WITHOUT_EFFECT
from attentest_spec import Choices, Limits, Sizes, registry
from attentest_spec.choices import Value
from attentest_spec.precision import PRECISIONS
from attentest_spec.torch import Recipe, TorchBackend, TorchPart

# What is exact ------------------------------------------------------------------------------------


@share(2)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_round_trip_is_bit_exact_in_every_precision(precision: str) -> None:
    before = checkpoint(plain(), precision=precision)
    there = converted(before, plain(), fused(), sizes=HEADS)
    assert {array.dtype.name for array in there.checkpoint.entries.values()} == {precision}
    assert same(converted(there.checkpoint, fused(), plain()).checkpoint, before)


@share(2)
@pytest.mark.parametrize("name", WHOLE)
def test_a_backend_and_one_of_equal_choices_compute_the_same(name: str) -> None:
    backend = registry.load(name)
    twin = reference_backend(Fused, backend.choices, "twin")
    before = checkpoint(backend, SIZES.but(layers=min(2, backend.limits.layers or 2)))
    there = converted(before, backend, twin, sizes=HEADS)
    assert there.lost == ()
    assert there.effect.precision == "float64"
    assert furthest(there) < 1e-12
    assert all(one.size > 0.1 for one in there.effect.apart)
    assert same(converted(there.checkpoint, twin, backend).checkpoint, before)


@share(3)
@pytest.mark.parametrize("pair", list(permutations(WHOLE, 2)), ids="-".join)
def test_every_pair_is_carried_or_told_which_choices_differ(pair: tuple[str, str]) -> None:
    source, target = map(registry.load, pair)
    ours, theirs = Choices.of(source.choices), Choices.of(target.choices)
    apart = [
        f"{name} ({value} and {theirs[name]})"
        for name, value in ours.as_dict().items()
        if value != theirs[name] and name not in SETTLED_BY_ENTRIES + WITHOUT_EFFECT
    ]
    before = checkpoint(source, SIZES.but(layers=1))
    there = converted(before, source, target, sizes=HEADS, approximate=True)
    if there.lost:
        assert furthest(there) > 0
        with pytest.raises(NotConvertible, match=re.escape(", ".join(apart))):
            converted(before, source, target, sizes=HEADS)
    else:
        assert not apart
        assert same(converted(there.checkpoint, target, source).checkpoint, before)


BIASES = pytest.mark.parametrize(
    ("choice", "lost"),
    [
        ("projection_bias", "self_attention.key.bias"),
        ("norm_bias", "feed_forward_norm.bias"),
        ("feed_forward_bias", "feed_forward.inner.bias"),
        ("generator_bias", "generator.bias"),
    ],
)


@share(2)
@BIASES
def test_biases_of_zero_are_added_and_left_out_without_an_effect(choice: str, lost: str) -> None:
    bare, biased = plain(**{choice: "none"}), fused(**{choice: "present"})
    before = checkpoint(bare)
    there = converted(before, bare, biased, sizes=HEADS)
    assert "set to zero" in there.notes[0]
    assert furthest(there) < 1e-12
    back = converted(there.checkpoint, biased, bare)
    assert "zeros were left out" in back.notes[0]
    assert same(back.checkpoint, before)


@share(2)
@BIASES
def test_biases_that_are_not_zero_have_no_place(choice: str, lost: str) -> None:
    bare, biased = plain(**{choice: "none"}), fused(**{choice: "present"})
    before = checkpoint(biased)
    with pytest.raises(NotConvertible, match=f"no place for: .*{re.escape(lost)}"):
        converted(before, biased, bare, sizes=HEADS)
    assert furthest(converted(before, biased, bare, sizes=HEADS, approximate=True)) > 0


@pytest.mark.parametrize(
    ("choice", "shared", "loose"),
    [("tying", "all-three", "none"), ("norm_sharing", "shared", "separate")],
)
def test_one_array_becomes_many_and_many_become_one_where_they_are_equal(
    choice: str, shared: str, loose: str
) -> None:
    one, many = plain(**{choice: shared}), fused(**{choice: loose})
    sizes = SIZES.but(target_vocabulary=11)
    before = checkpoint(one, sizes)
    there = converted(before, one, many, sizes=HEADS)
    assert there.lost == ()
    assert furthest(there) < 1e-12
    assert same(converted(there.checkpoint, many, one).checkpoint, before)
    with pytest.raises(NotConvertible, match="plain has one array for parameters that differ"):
        converted(checkpoint(many, sizes), many, one, sizes=HEADS)


def test_one_head_is_as_wide_as_the_model_either_way() -> None:
    narrow, wide = plain(), fused(head_width="d")
    sizes = SIZES.but(heads=1)
    there = converted(checkpoint(narrow, sizes), narrow, wide, sizes={"heads": 1})
    assert furthest(there) < 1e-12
    with pytest.raises(NotConvertible, match=r"key\.weight \(6, 6\), not \(12, 6\)"):
        converted(checkpoint(narrow), narrow, wide, sizes=HEADS)


def test_models_that_cannot_be_compared_are_carried_all_the_same() -> None:
    silent = fused()
    recipe = Recipe(silent.recipes["model"].build, parameters=silent.recipes["model"].parameters)
    mute = TorchBackend(name="mute", title="", recipes={"model": recipe}, choices=silent.choices)
    there = converted(checkpoint(plain()), plain(), mute, sizes=HEADS)
    assert there.lost == ()
    assert re.match(
        "The outputs .* not be compared: mute .* no method named 'encode'", str(there.effect)
    )


# Choices that no shape shows ----------------------------------------------------------------------


@share(5)
@pytest.mark.parametrize(
    ("choice", "value", "told"),
    [
        ("norm_placement", "pre", "post and pre"),
        ("norm_epsilon", 1e-6, "1e-05 and 1e-06"),
        ("norm_epsilon_place", "added-to-deviation", "inside-root and added-to-deviation"),
        ("norm_variance", "unbiased", "biased and unbiased"),
        ("embedding_scale", "none", "sqrt-d and none"),
        ("positional_encoding", "halves", "interleaved and halves"),
        ("mask_fill", -1e4, "exact and -10000.0"),
        ("activation", "gelu", "relu and gelu"),
        ("output", "logits", "probabilities and logits"),
    ],
)
def test_another_choice_is_refused_with_both_values(choice: str, value: Value, told: str) -> None:
    before, other = checkpoint(plain()), fused(**{choice: value})
    with pytest.raises(NotConvertible, match=rf"{choice} \({told}\)\. With --approximate"):
        converted(before, plain(), other, sizes=HEADS)
    there = converted(before, plain(), other, sizes=HEADS, approximate=True)
    assert len(there.lost) == 1
    assert same(there.checkpoint, converted(before, plain(), fused(), sizes=HEADS).checkpoint)


def test_output_of_a_sequence_of_padding_is_ignored() -> None:
    there = converted(checkpoint(plain()), plain(), fused(fully_masked_row="zero"), sizes=HEADS)
    assert furthest(there) < 1e-12


def test_a_final_norm_has_parameters_and_is_another_choice() -> None:
    before, other = checkpoint(plain()), fused(final_norm="present")
    with pytest.raises(NotConvertible, match=r"final_norm \(none and present\)") as refusal:
        converted(before, plain(), other, sizes=HEADS)
    assert "more parameters: decoder.norm.bias, decoder.norm.gain" in str(refusal.value)
    there = converted(before, plain(), other, sizes=HEADS, approximate=True)
    assert (there.checkpoint.entries["encoder.norm.scale"] == 1).all()


def test_a_backend_of_one_precision_is_built_and_compared_in_no_other() -> None:
    wide, asked = fused(), set()

    class Narrow(TorchBackend):
        def build(self, component: str, sizes: Sizes, **how: str) -> TorchPart:  # type: ignore[override]
            asked.add(how["precision"])
            return super().build(component, sizes, **how)

    narrow = Narrow(
        name="narrow",
        title="",
        recipes=wide.recipes,
        choices=wide.choices,
        limits=Limits(precisions=("float32",)),
    )
    there = converted(checkpoint(plain(), precision="float32"), plain(), narrow, sizes=HEADS)
    assert there.effect.precision == "float32"
    assert 0 < furthest(there) < 1e-5
    assert asked == {"float32"}


def test_difference_hidden_by_declarations_shows_in_the_outputs() -> None:
    honest = fused()
    recipe = honest.recipes["model"]
    blind = Recipe(
        lambda sizes: recipe.build(sizes.but(source_pad=99)),  # it sees no pad
        methods=recipe.methods,
        parameters=recipe.parameters,
    )
    liar = TorchBackend(name="liar", title="", recipes={"model": blind}, choices=honest.choices)
    assert furthest(converted(checkpoint(plain()), plain(), liar, sizes=HEADS)) > 1e-3


def test_the_smallest_model_there_is_can_be_compared() -> None:
    small = Sizes(d_model=2, heads=1, d_ff=1, layers=1, source_vocabulary=2, target_vocabulary=2)
    there = converted(checkpoint(plain(), small), plain(), fused(), sizes={"heads": 1})
    assert furthest(there) < 1e-12


def test_a_learned_table_takes_the_place_of_a_formula_approximately() -> None:
    before, learned = checkpoint(plain()), fused(positional_encoding="learned")
    with pytest.raises(
        NotConvertible, match=r"known of the model: max_length.*--sizes max_length=8"
    ):
        converted(before, plain(), learned, sizes=HEADS)
    given = {"heads": 2, "max_length": 9}
    with pytest.raises(NotConvertible, match="interleaved and learned"):
        converted(before, plain(), learned, sizes=given)
    there = converted(before, plain(), learned, sizes=given, approximate=True)
    assert furthest(there) < 1e-12
    assert len(there.checkpoint.entries["source_positions.rows"]) == 9


# Entries that are not those of the source ---------------------------------------------------------


def test_missing_extra_and_misshapen_entries_are_all_told() -> None:
    before = without(checkpoint(plain()), "generator.bias")
    wrong = changed(
        before, spare=np.ones(3), **{"encoder.layers.1.feed_forward.inner.bias": np.ones(4)}
    )
    with pytest.raises(NotConvertible) as refusal:
        converted(wrong, plain(), fused(), sizes=HEADS)
    assert "entries are missing: generator.bias" in str(refusal.value)
    assert "entries are not of plain: spare" in str(refusal.value)
    assert "another shape: encoder.layers.1.feed_forward.inner.bias (4,), not (10,)" in str(
        refusal.value
    )
    assert len(converted(wrong, plain(), fused(), sizes=HEADS, approximate=True).lost) == 3


def test_a_foreign_checkpoint_is_told_by_its_names() -> None:
    with pytest.raises(
        NotConvertible, match=r"holds no entry of plain. It holds h\.0\.attn; a model of"
    ):
        converted(Checkpoint({"h.0.attn": np.ones(3)}), plain(), fused())


def test_entries_of_two_precisions_are_refused() -> None:
    mixed = changed(checkpoint(plain()), **{"generator.bias": np.zeros(13, np.float32)})
    with pytest.raises(NotConvertible, match=r"these are of float32, float64\. Cast them"):
        converted(mixed, plain(), fused(), sizes=HEADS)


def test_one_of_two_names_of_a_tied_matrix_is_enough() -> None:
    tied = plain(tying="target-and-output")
    before = checkpoint(tied)
    half = without(before, "target_embedding.weight")
    assert len(half.entries) < len(before.entries)
    there = converted(half, tied, fused(tying="target-and-output"), sizes=HEADS)
    assert there.lost == ()
    assert same(
        converted(there.checkpoint, fused(tying="target-and-output"), tied).checkpoint, before
    )


def test_two_names_of_a_tied_matrix_have_to_agree() -> None:
    tied = plain(tying="target-and-output")
    before = checkpoint(tied)
    unlike = changed(before, **{"generator.weight": before.entries["generator.weight"] + 1})
    with pytest.raises(
        NotConvertible, match=r"unlike numbers for what is one array\): .*embedding\.weight"
    ):
        converted(unlike, tied, fused(), sizes=HEADS)


class WithTable(nn.Module):
    """A model that saves a fixed table, as long as sentences may be."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.core = plain().recipes["model"].build(sizes)
        self.register_buffer("table", torch.arange(sizes.max_length).double())

    def forward(self, source: Tensor, target: Tensor) -> Any:
        """Compute the core's output; the table adds nothing."""
        return self.core(source, target) + 0 * self.table.sum()


def tabled() -> TorchBackend:
    recipe = plain().recipes["model"]
    return TorchBackend(
        name="tabled",
        title="saves a table",
        choices=plain().choices,
        recipes={
            "model": Recipe(
                WithTable,
                methods={
                    "encode": lambda built, source: recipe.methods["encode"](built.core, source)
                },
                parameters={name: f"core.{name}" for name in ("encoder", "decoder", "generator")}
                | {f"{side}_embedding": f"core.{side}_embedding" for side in ("source", "target")},
            )
        },
    )


def test_a_fixed_table_is_not_carried_but_built() -> None:
    before = checkpoint(plain())
    there = converted(before, plain(), tabled(), sizes={"heads": 2, "max_length": 9})
    assert there.checkpoint.entries["table"].tolist() == list(range(9))
    back = converted(there.checkpoint, tabled(), plain())
    assert back.checkpoint.sizes["max_length"] == 9
    assert same(back.checkpoint, before)


def test_a_fixed_table_with_other_numbers_is_another_model() -> None:
    wrong = changed(checkpoint(tabled()), table=np.ones(9))
    with pytest.raises(NotConvertible, match=r"\(a fixed table that tabled builds .*\): table\."):
        converted(wrong, tabled(), plain(), sizes=HEADS)


# Backends that cannot take part -------------------------------------------------------------------


def test_a_width_beyond_the_limits_of_a_backend_is_refused() -> None:
    even = replace(fused(), limits=Limits(odd_width=False))
    odd = checkpoint(plain(), SIZES.but(d_model=7, heads=1))
    with pytest.raises(NotConvertible, match=r"^fused has no model of d_model=7: .* d_model=14\.$"):
        converted(odd, plain(), even, sizes={"heads": 1})
    narrow = replace(fused(), limits=Limits(inner=4))
    with pytest.raises(NotConvertible, match=r"no model of d_ff=10: .* allow d_ff=24\.$"):
        converted(checkpoint(plain()), plain(), narrow, sizes=HEADS)


def test_a_backend_without_a_state_is_refused() -> None:
    with pytest.raises(NotConvertible, match="The state of oracle cannot be read by its own names"):
        converted(checkpoint(plain()), plain(), OracleBackend(), sizes=HEADS)


def test_a_backend_without_a_model_is_refused() -> None:
    partial = TorchBackend(name="partial", title="", recipes={}, limits=Limits())
    with pytest.raises(NotConvertible, match="partial provides no model"):
        converted(checkpoint(plain()), plain(), partial, sizes=HEADS)


def test_a_file_that_states_other_choices_than_its_backend_is_refused() -> None:
    stated = Checkpoint(checkpoint(plain()).entries, choices={"activation": "gelu"})
    with pytest.raises(
        NotConvertible, match="file says that the choice activation is gelu, and plain"
    ):
        converted(stated, plain(activation="relu"), fused(), sizes=HEADS)
