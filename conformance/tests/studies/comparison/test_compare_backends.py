"""`attentest compare`: the explanation of a difference is complete, minimal and true."""

import json
import warnings
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import torch
from compared import ONE_LAYER, SMALL, believed, choices_in, known, part_of, plain
from proof import share

from attentest.faults import fault_of, inject
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.studies.comparison import BOUND, EQUAL, EXPLAINED, NOT_EXPLAINED, compare
from attentest.studies.comparison.compare import common, side_by_side, unlike
from attentest.studies.comparison.explaining import applied, room
from attentest.studies.comparison.inputs import weights
from attentest.studies.comparison.notes import cuts
from attentest.studies.comparison.participant import account, recording
from attentest.studies.comparison.recording import furthest, of_oracle
from attentest_spec import Choices, registry

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a library may have some of its own when it is imported
    LOADED = {name: registry.load(name) for name in registry.installed()}
INSTALLED = {name: known(one) for name, one in LOADED.items() if "float64" in one.limits.precisions}
WHOLE = {name: one for name, one in INSTALLED.items() if "model" in LOADED[name].components}
PAIRS = [
    pair
    for pair in combinations(INSTALLED, 2)
    if set(LOADED[pair[0]].components) & set(LOADED[pair[1]].components)
]


@pytest.mark.proof
@share(12)
@pytest.mark.parametrize(("first", "other"), PAIRS)
def test_the_explanation_of_every_pair_is_complete_and_minimal(first, other):
    pair = {name: INSTALLED[name] for name in (first, other)}
    found = side_by_side(pair, SMALL)
    (one,) = found.explanations
    assert found.explained
    assert one.status == (EXPLAINED if one.options else EQUAL)

    accounts = {name: account(participant) for name, participant in pair.items()}
    example = found.example  # a decoder-only model is compared on another one
    components = common(accounts)

    def oracle(choices):
        return of_oracle(choices, components, example)

    own = accounts[other].choices
    done = recording(pair[other], own, components, example)
    done = cuts(done, oracle(own), example, room(own, oracle, example))

    def beyond(flips):
        """Return how far `other` is from `first` with `flips`, in units of what counts as equal."""
        flipped = applied(accounts[first].choices, flips)
        near = min(room(one, oracle, example) for one in (flipped, own))
        return furthest(done, oracle(flipped), example) / near

    assert beyond(one.options) <= 1.0
    for flip in one.options:
        assert beyond([kept for kept in one.options if kept != flip]) > 1.0, flip
    rounding = ("softmax_arithmetic", "rms_arithmetic", "rotary_arithmetic")
    if "float32" not in {one.choices[name] for one in accounts.values() for name in rounding}:
        assert furthest(done, oracle(applied(accounts[first].choices, one.options)), example) < 1e-9
    named = {flip.choice for flip in (*one.options, *one.silent)}
    turns = {name for name in named if name.startswith("rotary_")}  # of one that turns, alone
    unknown = {row.choice for row in found.choices if None in row.values}  # to one of them
    differing = {row.choice for row in found.choices if row.differs}
    assert named - turns - unknown == differing - turns


@pytest.mark.exhaustive
def test_all_at_once_are_compared_pair_by_pair():
    found = side_by_side(WHOLE, SMALL)
    assert [(one.first, one.other) for one in found.explanations] == list(combinations(WHOLE, 2))
    assert found.explained
    assert all(len(row.outputs) == len(WHOLE) - 1 for row in found.steps)
    assert not any(one.step for one in found.own)


@share(6)
@pytest.mark.parametrize("specimen", REFERENCE_MODELS)
@pytest.mark.parametrize(
    "flips",
    [
        {"norm_placement": "pre"},
        {"final_norm": "present"},
        {"norm_epsilon": 1e-6},
        {"norm_sharing": "shared"},
        {"embedding_scale": "none"},
        {"positional_encoding": "learned"},
        {"positional_encoding": "learned-scaled", "position_offset": 2.0},
        {"positional_encoding": "halves-inclusive", "position_offset": 1.0},
        {"position_arithmetic": "float32"},
        {"embedding_norm": "present"},
        {"logit_scale": "inverse-sqrt-d"},
        {"positional_encoding": "none"},
        {"head_width": "d"},
        {"activation": "gelu"},
        {"projection_bias": "none"},
        {"norm_bias": "none"},
        {"feed_forward_bias": "none"},
        {"generator_bias": "none"},
        {"output": "logits"},
        {"tying": "none"},
        {"tying": "target-and-output"},
        {"tying": "embeddings"},
        {"norm_variance": "unbiased", "output": "log-probabilities"},
        {"norm_epsilon_place": "added-to-deviation", "norm_epsilon": 1e-6},
        {"norm_placement": "pre", "final_norm": "present", "activation": "silu"},
        {"tying": "none", "head_width": "d", "positional_encoding": "halves"},
    ],
    ids=lambda flips: "+".join(flips),
)
def test_exactly_the_flipped_choices_are_found(specimen, flips):
    other = reference_backend(REFERENCE_MODELS[specimen], flips)
    found = believed(plain(), replace(other, name="other"))
    (one,) = found.explanations
    assert one.status == EXPLAINED
    assert choices_in(one) == set(flips)
    assert {row.choice for row in found.choices if row.differs} == set(flips)
    assert one.left < 1e-12


@pytest.mark.parametrize("specimen", REFERENCE_MODELS)
def test_a_softmax_in_float32_is_found(specimen):
    other = reference_backend(REFERENCE_MODELS[specimen], SINGLE, "other")
    (one,) = believed(plain(), other).explanations
    assert one.status == EXPLAINED
    assert choices_in(one) == {"softmax_arithmetic"}
    assert one.left < 1e-6
    (same,) = believed(plain(**SINGLE), other).explanations
    assert same.status == EQUAL


SINGLE = {"softmax_arithmetic": "float32"}


def test_choices_that_need_other_inputs_are_told_apart():
    found = believed(
        plain(), plain(mask_fill=-1e9, fully_masked_row="zero", embedding_scale="none")
    )
    (one,) = found.explanations
    assert choices_in(one) == {"embedding_scale"}
    assert {flip.choice for flip in one.silent} == {"mask_fill", "fully_masked_row"}


BIASED = {"projection_bias": "present"}


@pytest.mark.exhaustive
def test_of_what_is_neither_declared_nor_shown_nothing_is_said():
    bare = replace(part_of(plain(), "multi_head_attention"), choices=BIASED, name="bare")
    found = compare(bare, plain(projection_bias="none", embedding_scale="none"))
    rows = {row.choice: row for row in found.choices}
    assert rows["embedding_scale"].values == (None, "none")
    assert not rows["embedding_scale"].differs
    assert rows["projection_bias"].values == ("present", "none")
    (one,) = found.explanations
    assert choices_in(one) == {"projection_bias"}
    assert not one.silent


def test_equal_numbers_under_unlike_choices_are_equal():
    (one,) = believed(plain(), plain(mask_fill=-1e9)).explanations
    assert one.status == EQUAL
    assert [flip.choice for flip in one.silent] == ["mask_fill"]
    assert one.parting.step == ""


@pytest.mark.exhaustive
def test_measured_choices_take_precedence_over_declared_ones():
    honest = plain(embedding_scale="none")
    lying = replace(honest, choices=dict(plain().choices), name="lying")
    found = compare(plain(), lying, example=ONE_LAYER)
    (one,) = found.explanations
    assert choices_in(one) == {"embedding_scale"}
    (row,) = [row for row in found.choices if row.differs]
    assert not row.findings[1].agrees


def test_the_weights_are_the_same_wherever_they_have_a_place():
    for one, other in product(
        (Choices(), Choices(projection_bias="present", tying="none", head_width="d")), repeat=2
    ):
        first, second = (weights(SMALL, "model", choices) for choices in (one, other))
        free = [name for name in first if "embed" not in name and name != "generator.weight"]
        alike = [n for n in free if n in second and first[n].shape == second[n].shape]
        assert alike
        assert all(np.array_equal(first[name], second[name]) for name in alike)


def test_heads_as_wide_as_the_model_are_held_against_the_oracle_on_their_own_weights():
    found = believed(plain(), plain(head_width="d"))
    rows = {row.step: row for row in found.steps}
    query = rows["encoder.layers.0.self_attention.query"]
    assert query.shapes == ((2, 5, 8), (2, 5, 16))
    assert query.outputs == (None,)
    assert any("different shapes" in note and "reference" in note for note in found.notes)
    assert max(one.difference for one in found.own) < BOUND


@pytest.mark.parametrize("specimen", REFERENCE_MODELS)
def test_a_shared_norm_is_seen_at_each_of_its_sublayers(specimen):
    backend = reference_backend(REFERENCE_MODELS[specimen], {"norm_sharing": "shared"})
    found = believed(backend, backend, example=SMALL)
    rows = {row.step: row for row in found.steps}
    for layer in (0, 1):
        for norm in ("self_attention_norm", "cross_attention_norm", "feed_forward_norm"):
            assert rows[f"decoder.layers.{layer}.{norm}"].shapes == ((2, 4, 8), (2, 4, 8))
    assert max(one.difference for one in found.own) < BOUND


@pytest.mark.parametrize(
    ("slug", "step"),
    [
        ("feed_forward.no-activation", "encoder.layers.0.feed_forward"),
        ("feed_forward.inner-bias-dropped", "encoder.layers.0.feed_forward"),
        ("attention.scale-missing", "encoder.layers.0.self_attention.output"),
        ("attention.softmax-over-queries", "encoder.layers.0.self_attention.output"),
        ("embedding.ids-shifted", "source_embedding"),
        ("layer_norm.epsilon-place-outside", "encoder.layers.0.self_attention_norm"),
        ("encoder.norms-exchanged", "encoder.layers.0.self_attention_norm"),
        ("encoder.final-norm-over-the-sentence", "encoder"),
        ("decoder.keys-and-values-apart", "decoder.layers.0.cross_attention.value"),
        ("decoder.target-mask-ignored", "decoder.layers.0.self_attention.output"),
        ("decoder.one-layer-short", "generator"),
        ("generator.temperature", "generator"),
    ],
)
def test_a_mistake_is_not_explained_and_the_first_step_is_named(slug, step):
    wrong = inject(fault_of(slug), "plain")
    found = believed(plain(), wrong)
    (one,) = found.explanations
    assert one.status == NOT_EXPLAINED
    assert not found.explained
    assert one.options == ()
    assert list(one.astray) == [wrong.name]
    assert one.astray[wrong.name].step.startswith(step)
    assert one.parting.step == one.astray[wrong.name].step


def test_a_mistake_beside_other_choices_is_told_from_them():
    wrong = inject(fault_of("feed_forward.no-activation"), "plain")
    (one,) = believed(plain(embedding_scale="none"), wrong).explanations
    assert one.status == NOT_EXPLAINED
    assert one.parting.step == "source_embedding"
    assert one.astray[wrong.name].step.startswith("encoder.layers.0.feed_forward")


def test_the_result_is_plain_data():

    found = believed(plain(), plain(activation="gelu"))
    told = json.loads(json.dumps(found.as_dict()))
    assert told["explanations"][0]["options"] == [
        {"choice": "activation", "first": "relu", "other": "gelu"}
    ]
    assert told["choices"][0]["why"]
    assert told["explained"] is True


def test_one_name_twice_is_told_apart():
    assert unlike(["a", "b", "a", "a"]) == ["a", "b", "a (2)", "a (3)"]


def test_a_comparison_leaves_torch_as_it_was():
    before = torch.is_grad_enabled(), torch.get_default_dtype()
    believed(plain(), plain())
    assert (torch.is_grad_enabled(), torch.get_default_dtype()) == before
