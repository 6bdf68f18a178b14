"""The parameter map of modules in many styles: found, sound, and never at the price of a bug."""

import numpy as np
import pytest
import styles_of_attention as attention
import styles_of_layers as layers
import styles_of_libraries as libraries
import styles_of_models as models
import styles_of_parts as parts
import styles_of_storage as storage
from finding import conforms, direct, judged, same_lines
from own import OWN
from proof import share

from attentest.targets.adapt.parameters import find_table
from attentest.targets.adapt.parameters.behaviour import Fired
from attentest.targets.adapt.parameters.trials.samples import part_samples
from attentest_spec import Choices, Limits, Sizes, registry
from attentest_spec.mapping import locate
from attentest_spec.parameters import shapes
from attentest_spec.torch import TorchBackend


@share(4)
@pytest.mark.parametrize("style", [*attention.SOUND, *storage.SOUND])
def test_attention_in_every_style(style):
    conforms(*judged("multi_head_attention", style))


def test_the_attention_of_the_library():
    found, verdicts = judged("multi_head_attention", attention.library, attention.call_library)
    conforms(found, verdicts)


@share(2)
@pytest.mark.parametrize(
    ("twin", "sound"),
    [
        (attention.QueryAndKeySwapped, attention.NamedLinears),
        (attention.KeyForValue, attention.NamedLinears),
        (attention.WrongMerge, attention.NamedLinears),
        (attention.ListWithoutScale, attention.FourLinears),
    ],
)
def test_a_map_takes_no_mistake_in(twin, sound):
    found, verdicts = judged("multi_head_attention", twin)
    assert found.table == find_table(sound, "multi_head_attention", direct).table
    assert verdicts["multi_head_attention.formula"].status == "violation"
    same_lines(found)


def test_where_nothing_fits_the_usual_order_is_assumed_and_said():
    found = find_table(attention.ListWithoutScale, "multi_head_attention", direct)
    assert any("no assignment gives the spec's numbers" in one for one in found.remarks)
    assert any("query = linears.0, key = linears.1" in one for one in found.remarks)


def test_maps_that_cannot_be_told_apart_are_said():
    found, verdicts = judged("multi_head_attention", storage.OneHeadPacked, limits=Limits(heads=1))
    assert any("cannot be distinguished" in one for one in found.remarks)
    assert verdicts["multi_head_attention.formula"].status == "pass"


def test_a_packed_layout_is_said():
    found = find_table(storage.InterleavedByHead, "multi_head_attention", direct)
    assert any("(h n e) d -> (n h e) d: query, then key, then value" in o for o in found.remarks)


@share(2)
@pytest.mark.parametrize(("style", "activation"), parts.FEED_FORWARD.items())
def test_feed_forward_in_every_style(style, activation):
    conforms(*judged("feed_forward", style, choices={"activation": activation}))


@pytest.mark.parametrize("style", parts.LAYER_NORM)
def test_layer_norm_in_every_style(style):
    conforms(*judged("layer_norm", style))


@pytest.mark.parametrize(
    ("component", "style", "choices"),
    [
        ("layer_norm", parts.norm_without_bias, {"norm_bias": "none"}),
        ("feed_forward", parts.feed_forward_without_biases, {"feed_forward_bias": "none"}),
        ("generator", parts.head_without_bias, {"generator_bias": "none", "output": "logits"}),
    ],
)
def test_biases_that_are_left_out(component, style, choices):
    found, verdicts = judged(component, style, choices=choices)
    assert found.choices.items() <= choices.items()
    conforms(found, verdicts)


@pytest.mark.parametrize(("style", "scale"), parts.EMBEDDING.items())
def test_embedding_in_every_style(style, scale):
    conforms(*judged("embedding", style, choices={"embedding_scale": scale}))


@pytest.mark.parametrize(("style", "output"), parts.GENERATOR.items())
def test_generator_in_every_style(style, output):
    conforms(*judged("generator", style, choices={"output": output}))


def test_residual():
    def call(built, x, matrix):
        return built(x, lambda inner: inner @ matrix)

    choices = {"norm_placement": "pre"}
    conforms(*judged("residual", parts.Sublayer, call, choices, limits=Limits(dropout=False)))


@pytest.mark.parametrize("style", [parts.Positions, parts.BarePositions])
def test_learned_positions(style):
    found, verdicts = judged("positional_encoding", style, clauses=["positional_encoding.formula"])
    assert found.choices == {"positional_encoding": "learned"}
    assert verdicts["positional_encoding.formula"].status == "deviation"
    same_lines(found)


@share(2)
@pytest.mark.parametrize(("style", "choices"), layers.ENCODER_LAYER.items())
def test_encoder_layer_in_every_style(style, choices):
    conforms(*judged("encoder_layer", style, choices=choices, limits=Limits(dropout=False)))


@pytest.mark.parametrize(("style", "choices"), layers.DECODER_LAYER.items())
def test_decoder_layer_in_every_style(style, choices):
    conforms(*judged("decoder_layer", style, choices=choices, limits=Limits(dropout=False)))


def test_the_layers_of_the_library():
    conforms(*judged("encoder_layer", layers.library_layer, layers.call_library_layer))
    conforms(
        *judged("decoder_layer", layers.library_decoder_layer, layers.call_library_decoder_layer)
    )


@share(2)
@pytest.mark.parametrize(
    ("component", "twin", "sound", "clause"),
    [
        ("feed_forward", parts.BiasLeftOut, parts.Numbered, "feed_forward.both-biases"),
        ("layer_norm", parts.GainAndBiasSwapped, parts.Norm, "layer_norm.formula"),
        ("decoder_layer", layers.CrossBeforeSelf, layers.LongNames, "decoder.layer-formula"),
    ],
)
def test_a_map_of_another_part_takes_no_mistake_in(component, twin, sound, clause):
    choices = layers.ENCODER_LAYER.get(sound, {})
    found, verdicts = judged(component, twin, choices=choices)
    assert found.table == find_table(sound, component, direct).table
    assert verdicts[clause].status in ("violation", "error")


def test_norms_are_mapped_by_the_numbers_before_their_names():
    choices = layers.ENCODER_LAYER[layers.Block]
    limits = Limits(dropout=False)
    found, verdicts = judged("encoder_layer", layers.NormsSwapped, choices=choices, limits=limits)
    assert found.table["self_attention_norm.gain"] == "norm2.weight"
    assert any("the numbers fit this one alone" in one for one in found.remarks)
    conforms(found, verdicts)
    named = {"self_attention_norm": "norm1", "feed_forward_norm": "norm2"}
    found = find_table(layers.NormsSwapped, "encoder_layer", direct, named)
    assert found.table == find_table(layers.Block, "encoder_layer", direct).table


def test_a_projection_that_is_used_for_another_one_is_reported():
    found = find_table(attention.QueryAndKeySwapped, "multi_head_attention", direct)
    assert any("the numbers fit only against the names" in one for one in found.remarks)


def test_a_bias_that_is_not_there_is_said():
    found = find_table(parts.BiasLeftOut, "feed_forward", direct)
    assert any("Nothing was found for inner.bias" in one for one in found.remarks)


def test_left_over_parameters_are_reported():
    found = find_table(parts.ThreeMaps, "feed_forward", direct)
    assert any("Left over" in one for one in found.remarks)
    assert any("no assignment gives" in one for one in found.remarks)


@share(2)
@pytest.mark.parametrize(("style", "choices"), models.ENCODER.items())
def test_encoder_in_every_style(style, choices):
    conforms(*judged("encoder", style, choices=choices, limits=Limits(dropout=False)))


@pytest.mark.parametrize(("style", "choices"), models.DECODER.items())
def test_decoder_in_every_style(style, choices):
    conforms(*judged("decoder", style, choices=choices, limits=Limits(dropout=False)))


@share(2)
@pytest.mark.parametrize("style", libraries.LIBRARIES)
def test_layers_in_the_style_of_libraries(style):
    component, choices = libraries.LIBRARIES[style]
    conforms(*judged(component, style, choices=choices, limits=Limits(dropout=False)))


def test_assignment_by_numbers_is_reported():
    found = find_table(libraries.NothingSaid, "encoder_layer", direct)
    said = "self_attention, encoder_layer: names and shapes leave several maps, and the numbers"
    assert any(said in one and "feed_forward_norm.gain = p_gain" in one for one in found.remarks)


def test_every_part_is_watched_for_itself():
    found = find_table(models.PreTranslator, "model", direct)
    for slot in ("encoder.layers.0.self", "decoder.layers.0.self", "decoder.layers.0.cross"):
        start = f"{slot}_attention: names and shapes leave several maps, and the numbers chose"
        assert any(one.startswith(start) for one in found.remarks), found.remarks


def test_parts_are_also_called_with_a_causal_mask():
    x, memory = np.zeros((2, 3, 4)), np.ones((2, 5, 4))
    plain, causal = part_samples("multi_head_attention", Fired("attn", (x, x), x))
    assert plain.inputs[3] is None
    assert causal.inputs[3].tolist() == [[np.tril(np.ones((3, 3))).astype(bool).tolist()]]
    query, key, value, _ = part_samples("multi_head_attention", Fired("a", (memory, x), x))[
        0
    ].inputs
    assert query is x
    assert key is value is memory


def test_that_the_time_ran_out_is_said(monkeypatch):
    monkeypatch.setattr("attentest.targets.adapt.parameters.found.SECONDS", 0.0)
    found = find_table(attention.OutputFirst, "multi_head_attention", direct)
    assert found.table["query"] == "linears.0"
    assert any("0 seconds" in one for one in found.remarks)


def test_layers_that_are_swapped_stay_swapped():
    found, verdicts = judged("encoder", models.LayersSwapped, choices=layers.PRE)
    assert found.table == find_table(models.Blocks, "encoder", direct).table
    assert verdicts["encoder.formula"].status == "violation"


MODEL_CLAUSES = [
    f"model.{name}"
    for name in (
        "formula",
        "encode-decode-is-forward",
        "every-parameter-reached",
        "parameter-gradient",
        "parameter-count",
        "parameter-map-complete",
        "tying",
        "tied-gradient",
        "float32",
    )
]
MODEL = {"embedding_scale": "none", "output": "logits"}


@pytest.mark.parametrize(
    ("style", "choices", "tying"),
    [
        (models.Translator, MODEL, "none"),
        (models.PreTranslator, {**MODEL, **layers.PRE}, "all-three"),
    ],
)
def test_a_whole_model(style, choices, tying):
    found, verdicts = judged(
        "model",
        style,
        choices=choices,
        limits=Limits(dropout=False),
        methods={"encode": style.encode, "decode": style.decode},
        clauses=MODEL_CLAUSES,
    )
    assert found.choices["tying"] == tying
    conforms(found, verdicts)


@share(3)
@pytest.mark.parametrize("name", OWN)
def test_the_map_that_an_adapter_writes_is_found(name):
    backend = registry.load(name)
    if not isinstance(backend, TorchBackend):
        pytest.skip("its parts are no torch modules")
    recipes = {part: one for part, one in backend.recipes.items() if one.parameters}
    for part in ("cached_decoding", "causal_layer", "language_model", "cached_language_model"):
        recipes.pop(part, None)  # code that decodes with a cache is not read, nor are these
    for component, recipe in recipes.items():
        sizes = Sizes(layers=min(2, backend.limits.layers or 2))
        names = shapes(component, sizes, Choices.of(backend.choices))
        places = {name: locate(name, recipe.parameters) for name in names}
        if any(place.plus or place.span for place in places.values()):
            continue  # a number that is stored less another, heads in one matrix: no shape says it
        found = find_table(recipe.build, component, recipe.call)
        assert {name: locate(name, found.table) for name in names} == places, component
        declared = {choice: Choices.of(backend.choices)[choice] for choice in found.choices}
        if declared.get("positional_encoding") == "learned-scaled":
            declared["positional_encoding"] = "learned"  # shapes tell the table, not its factor
        if declared.get("router_bias") == "in-choice-alone":
            declared["router_bias"] = "in-scores"  # shapes tell the bias, not what it acts on
        assert found.choices == declared, component
