"""`attentest compare`: the explanation of a difference is complete, minimal and true."""

import json
from dataclasses import replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
import pytest
import torch
from torch import nn

from attentest.comparison import (
    BOUND,
    EQUAL,
    EXAMPLES,
    EXPLAINED,
    NOT_EXPLAINED,
    BadExample,
    Comparison,
    compare,
)
from attentest.comparison.account import Account
from attentest.comparison.compare import common, side_by_side, unlike
from attentest.comparison.explaining import applied
from attentest.comparison.inputs import weights
from attentest.comparison.participant import Here
from attentest.comparison.recording import furthest, of_oracle
from attentest.faults import fault_of, planted
from attentest.identify import MEASURED, Finding
from attentest.specimens import SPECIMENS, specimen_backend
from attentest_spec import CHOICES, Backend, Choices, Limits, Place, registry
from attentest_spec.torch import Recipe, TorchBackend

SMALL = EXAMPLES["small"]
ONE_LAYER = replace(SMALL, sizes=SMALL.sizes.but(layers=1))


class Known(Here):
    """A backend that is looked at once."""

    @cached_property
    def _account(self) -> Account:
        return super().account()

    def account(self) -> Account:
        return self._account


class Believed(Here):
    """A backend whose word is taken for its choices."""

    def account(self) -> Account:
        given, known = self.backend, Choices.of(self.backend.choices)
        found = {name: Finding(name, known[name], known[name], MEASURED) for name in CHOICES}
        return Account(given.name, given.title, tuple(given.components), given.limits, found)


INSTALLED = {name: Known(registry.load(name)) for name in registry.names()}


def plain(**choices) -> Backend:
    return specimen_backend(SPECIMENS["plain"], choices)


def believed(*backends: Backend, example=ONE_LAYER) -> Comparison:
    labels = unlike([one.name for one in backends])
    return side_by_side(dict(zip(labels, map(Believed, backends), strict=True)), example)


def choices_in(explanation) -> set[str]:
    return {flip.choice for flip in explanation.options}


@pytest.mark.parametrize(("first", "other"), list(combinations(INSTALLED, 2)))
def test_the_explanation_of_every_pair_is_complete_and_minimal(first, other):
    pair = {name: INSTALLED[name] for name in (first, other)}
    found = side_by_side(pair, SMALL)
    (one,) = found.explanations
    assert one.status == EXPLAINED
    assert found.explained
    assert one.left < 1e-9
    assert one.parting.step

    accounts = {name: participant.account() for name, participant in pair.items()}
    example = SMALL.fitted({name: account.limits for name, account in accounts.items()})
    components = common(accounts)
    done = pair[other].record(accounts[other].choices, components, example)

    def left(flips):
        oracle = of_oracle(applied(accounts[first].choices, flips), components, example)
        return furthest(done, oracle, example)

    assert left(one.options) == one.left
    for flip in one.options:
        assert left([kept for kept in one.options if kept != flip]) > 1e-9, flip
    told = {flip.choice for flip in (*one.options, *one.silent)}
    assert told == {row.choice for row in found.choices if row.differs}


def test_all_at_once_are_compared_with_the_first():
    found = side_by_side(INSTALLED, SMALL)
    first, *others = INSTALLED
    assert [(one.first, one.other) for one in found.explanations] == [(first, n) for n in others]
    assert all(len(row.outputs) == len(others) for row in found.steps)
    assert max(one.difference for one in found.own) < BOUND


@pytest.mark.parametrize("specimen", SPECIMENS)
@pytest.mark.parametrize(
    "flips",
    [
        {"norm_placement": "pre"},
        {"final_norm": "present"},
        {"norm_epsilon": 1e-6},
        {"norm_sharing": "shared"},
        {"embedding_scale": "none"},
        {"positional_encoding": "learned"},
        {"positional_encoding": "none"},
        {"head_width": "d"},
        {"activation": "gelu"},
        {"projection_bias": "none"},
        {"output": "logits"},
        {"tying": "none"},
        {"tying": "target-and-output"},
        {"norm_variance": "unbiased", "output": "log-probabilities"},
        {"norm_epsilon_place": "added-to-deviation", "norm_epsilon": 1e-6},
        {"norm_placement": "pre", "final_norm": "present", "activation": "silu"},
        {"tying": "none", "head_width": "d", "positional_encoding": "halves"},
    ],
    ids=lambda flips: "+".join(flips),
)
def test_exactly_the_flipped_choices_are_found(specimen, flips):
    other = specimen_backend(SPECIMENS[specimen], flips)
    found = believed(plain(), replace(other, name="other"))
    (one,) = found.explanations
    assert one.status == EXPLAINED
    assert choices_in(one) == set(flips)
    assert {row.choice for row in found.choices if row.differs} == set(flips)
    assert one.left < 1e-12


def test_choices_that_need_other_inputs_are_told_apart():
    found = believed(
        plain(), plain(mask_fill=-1e9, fully_masked_row="zero", embedding_scale="none")
    )
    (one,) = found.explanations
    assert choices_in(one) == {"embedding_scale"}
    assert {flip.choice for flip in one.silent} == {"mask_fill", "fully_masked_row"}


def test_equal_numbers_under_unlike_choices_are_equal():
    (one,) = believed(plain(), plain(mask_fill=-1e9)).explanations
    assert one.status == EQUAL
    assert [flip.choice for flip in one.silent] == ["mask_fill"]
    assert one.parting.step == ""


def test_what_numbers_show_counts_and_not_what_is_declared():
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
    assert any("unlike shapes" in note and "oracle" in note for note in found.notes)
    assert max(one.difference for one in found.own) < BOUND


@pytest.mark.parametrize("specimen", SPECIMENS)
def test_a_shared_norm_is_seen_at_each_of_its_sublayers(specimen):
    backend = specimen_backend(SPECIMENS[specimen], {"norm_sharing": "shared"})
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
    ],
)
def test_a_mistake_is_not_explained_and_the_first_step_is_named(slug, step):
    wrong = planted(fault_of(slug), "plain")
    found = believed(plain(), wrong)
    (one,) = found.explanations
    assert one.status == NOT_EXPLAINED
    assert not found.explained
    assert one.options == ()
    assert list(one.astray) == [wrong.name]
    assert one.astray[wrong.name].step.startswith(step)
    assert one.parting.step == one.astray[wrong.name].step


def test_a_mistake_beside_other_choices_is_told_from_them():
    wrong = planted(fault_of("feed_forward.no-activation"), "plain")
    (one,) = believed(plain(embedding_scale="none"), wrong).explanations
    assert one.status == NOT_EXPLAINED
    assert one.parting.step == "source_embedding"
    assert one.astray[wrong.name].step.startswith("encoder.layers.0.feed_forward")


def part_of(backend: TorchBackend, *components: str) -> TorchBackend:
    return replace(backend, recipes={name: backend.recipes[name] for name in components})


def test_backends_are_compared_by_the_largest_parts_that_all_provide():
    found = believed(
        part_of(plain(), "encoder", "layer_norm", "embedding", "generator"),
        plain(activation="gelu", output="logits"),
    )
    assert found.components == ("embedding", "encoder", "generator")
    assert choices_in(found.explanations[0]) == {"activation", "output"}
    steps = {row.step for row in found.steps}
    assert {"embedding: output", "encoder: layers.0.feed_forward", "generator: output"} <= steps


@pytest.mark.parametrize("component", [name for name in plain().components if name != "model"])
def test_every_component_can_be_compared_alone(component):
    alone = part_of(plain(), component)
    found = believed(alone, alone)
    assert found.components == (component,)
    assert found.explained, found
    assert found.own[0].difference < BOUND


def test_backends_without_a_common_part_are_refused():
    with pytest.raises(BadExample, match="no component in common"):
        believed(part_of(plain(), "encoder"), part_of(plain(), "decoder"))


class Wordless:
    """A backend whose parts tell nothing of what is inside."""

    def __init__(self, backend: TorchBackend) -> None:
        self.backend = backend
        self.name = "wordless"

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def build(self, *given, **named):
        built = self.backend.build(*given, **named)

        class Silent:
            capabilities = ()
            load = built.load

            def __call__(self, *inputs, method=""):
                return built(*inputs, method=method)

        return Silent()


def test_a_backend_that_shows_no_steps_is_compared_by_its_outputs():
    found = believed(plain(), Wordless(plain(activation="silu")))
    (one,) = found.explanations
    assert choices_in(one) == {"activation"}
    assert [row.step for row in found.steps if row.outputs[0] is not None] == [
        "encode",
        "decode",
        "output",
    ]
    assert one.parting.step == "encode"
    assert any("wordless shows no steps" in note for note in found.notes)


class Adding(nn.Module):
    """A feed-forward network that adds the residual itself."""

    def __init__(self, sizes) -> None:
        super().__init__()
        self.inner = nn.Linear(sizes.d_model, sizes.d_ff)
        self.outer = nn.Linear(sizes.d_ff, sizes.d_model)

    def forward(self, x):
        return x + self.outer(self.inner(x).relu())


class Layer(nn.Module):
    """An encoder layer around it."""

    def __init__(self, sizes) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(sizes.d_model, sizes.heads, batch_first=True)
        self.first, self.second = nn.LayerNorm(sizes.d_model), nn.LayerNorm(sizes.d_model)
        self.adding = Adding(sizes)

    def forward(self, x, mask):
        hidden = None if mask is None else ~mask[:, 0, 0]
        attended, _ = self.attention(x, x, x, key_padding_mask=hidden)
        return self.second(self.adding(self.first(x + attended)))


def test_a_module_that_is_another_piece_of_the_whole_is_left_out():
    norm = {"gain": "weight", "bias": "bias"}
    table = {
        "self_attention.output": "attention.out_proj",
        **{f"self_attention_norm.{name}": f"first.{own}" for name, own in norm.items()},
        **{f"feed_forward_norm.{name}": f"second.{own}" for name, own in norm.items()},
        "feed_forward": "adding",
    }
    for number, name in enumerate(("query", "key", "value")):
        for kind in ("weight", "bias"):
            place = Place(f"attention.in_proj_{kind}", part=(number, 3))
            table[f"self_attention.{name}.{kind}"] = place
    odd = TorchBackend(
        name="odd",
        title="",
        recipes={"encoder_layer": Recipe(build=Layer, parameters=table)},
        choices=dict(plain().choices),
    )
    found = believed(part_of(plain(), "encoder_layer"), odd)
    assert found.explanations[0].status == EQUAL
    assert any("feed_forward is another piece" in note for note in found.notes), found.notes


def test_a_limit_is_kept_by_all_and_told():
    low = replace(plain(), limits=Limits(layers=1, heads=1, length=3, masks=("none",)))
    found = believed(plain(), low, example=SMALL)
    assert found.explained
    text = " ".join(found.notes)
    assert "layers is 1 instead of 2" in text
    assert "heads is 1 instead of 2" in text
    assert next(row for row in found.steps if row.step == "encode").shapes[0] == (2, 3, 8)


def test_inner_widths_that_exclude_each_other_are_refused():
    two, three = (replace(plain(), limits=Limits(inner=n)) for n in (2, 3))
    with pytest.raises(BadExample, match="times as wide"):
        believed(two, three)


def test_a_backend_that_raises_is_left_out_and_told():
    def build(sizes):
        raise RuntimeError("out of order")

    broken = replace(plain(), recipes={**plain().recipes, "model": Recipe(build=build)})
    found = believed(plain(), replace(broken, name="broken"), plain(output="logits"))
    (failure,) = found.failures
    assert failure.backend == "broken"
    assert "out of order" in failure.reason
    assert failure.loaded
    assert not found.explained
    assert [one.status for one in found.explanations] == [EXPLAINED]


def test_a_backend_without_double_precision_is_told():
    low = replace(plain(), limits=Limits(precisions=("float32",)), name="low")
    found = believed(plain(), low)
    assert "does not compute in float64" in found.failures[0].reason
    assert found.backends == ("plain",)
    assert found.explanations == ()
    assert not found.explained


def test_steps_that_cannot_be_read_are_told():
    class Talking(Here):
        account = Believed.account

    odd = Wordless(plain())
    build = odd.build
    odd.build = lambda *given, **named: _talking(build(*given, **named))
    found = side_by_side({"plain": Believed(plain()), "odd": Talking(odd)}, ONE_LAYER)
    assert "cannot be read" in found.failures[0].reason


def _talking(part):
    part.steps = lambda inputs: ["nonsense"]
    return part


def test_a_model_without_a_parameter_map_cannot_have_the_same_weights():
    unmapped = replace(plain().recipes["model"], parameters={})
    found = believed(plain(), replace(plain(), recipes={"model": unmapped}, name="bare"))
    assert "no parameter map" in found.failures[0].reason


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
