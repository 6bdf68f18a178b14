"""`attentest compare` where not all is there: some components, no steps, limits, refusals."""

from dataclasses import replace

import pytest
from compared import ONE_LAYER, SMALL, believed, choices_in, part_of, plain, trusted
from torch import nn

from attentest.harness.description import Facts
from attentest.studies.comparison import BOUND, EQUAL, EXPLAINED, BadExample
from attentest.studies.comparison.compare import side_by_side
from attentest.studies.cost import Plan
from attentest_spec import COMPONENTS, Limits, Place
from attentest_spec.torch import Recipe, TorchBackend


def test_backends_are_compared_by_the_largest_parts_that_all_provide():
    found = believed(
        part_of(plain(), "encoder", "layer_norm", "embedding", "generator"),
        plain(activation="gelu", output="logits"),
    )
    assert found.components == ("embedding", "encoder", "generator")
    assert choices_in(found.explanations[0]) == {"activation", "output"}
    steps = {row.step for row in found.steps}
    assert {"embedding: result", "encoder: layers.0.feed_forward", "generator: result"} <= steps


COMPARED = [
    name
    for name in plain().components
    # Searches and steps share no inputs.
    if name not in ("model", "cached_language_model")
    and COMPONENTS[name].chapter not in ("cache", "decoding")
]


@pytest.mark.parametrize("component", COMPARED)
def test_every_component_can_be_compared_alone(component):
    alone = part_of(plain(), component)
    found = believed(alone, alone)
    assert found.components == (component,)
    assert found.explained, found
    assert found.own[0].difference < BOUND


def test_backends_without_a_common_part_are_refused():
    with pytest.raises(BadExample, match="no component in common"):
        believed(part_of(plain(), "encoder"), part_of(plain(), "decoder"))


def of_masks(component):
    """Return two backends of `component` alone that share no kind of masks."""
    alone = part_of(plain(), component)
    masks = (("causal",), ("none", "padding"))
    return [replace(alone, limits=replace(alone.limits, masks=one), name=one[0]) for one in masks]


def test_masks_that_no_other_takes_are_named():
    with pytest.raises(BadExample, match=r"takes causal masks, and .* takes no mask or padding"):
        believed(*of_masks("encoder_layer"))


def test_masks_count_only_where_a_component_gets_one():
    assert believed(*of_masks("feed_forward")).explained
    facts = {name: Facts.of(one) for name, one in zip("ab", of_masks("feed_forward"), strict=True)}
    assert Plan().fitted(facts).component == "feed_forward"


def test_loops_over_tokens_are_not_followed():
    with pytest.raises(BadExample, match="sampling is a loop over tokens"):
        believed(part_of(plain(), "sampling"), part_of(plain(), "sampling"))


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
        "result",
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


def test_attention_with_one_input_is_asked_with_one():
    alone = replace(part_of(plain(), "multi_head_attention"), limits=Limits(cross=False))
    found = believed(plain(), replace(alone, name="alone"), example=SMALL)
    (row,) = [row for row in found.steps if row.step == "multi_head_attention: result"]
    assert row.shapes == ((2, 5, 8), (2, 5, 8))
    assert found.explained


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
    low = replace(plain(), limits=Limits(precisions=("bfloat16",)), name="low")
    found = believed(plain(), low)
    assert "does not compute in float64" in found.failures[0].reason
    assert found.backends == ("plain",)
    assert found.explanations == ()
    assert not found.explained


def test_steps_that_cannot_be_read_are_told():
    odd = Wordless(plain())
    build = odd.build
    odd.build = lambda *given, **named: _talking(build(*given, **named))
    found = side_by_side({"plain": trusted(plain()), "odd": trusted(odd)}, ONE_LAYER)
    assert "cannot be read" in found.failures[0].reason


def _talking(part):
    part.steps = lambda inputs: ["nonsense"]
    return part


def test_a_model_without_a_parameter_map_cannot_have_the_same_weights():
    unmapped = replace(plain().recipes["model"], parameters={})
    found = believed(plain(), replace(plain(), recipes={"model": unmapped}, name="bare"))
    assert "no parameter map" in found.failures[0].reason
