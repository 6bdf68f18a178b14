"""Identification: the numbers show every option, whatever is declared."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import miniatures
import numpy as np
import pytest
import torch
from own import OWN
from proof import item, one_of, study

from attentest.analysis.identify import (
    CANNOT_TELL,
    MEASURED,
    NONE_FITS,
    Finding,
    identify,
    measured_choices,
)
from attentest.analysis.identify.attending import TURNED
from attentest.analysis.identify.finding import same
from attentest.analysis.identify.reach import REACH, axes_of
from attentest.analysis.undeclared import effective_choices
from attentest.faults import faults, with_faults
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest_spec import CHOICES, Choices, Limits, registry
from attentest_spec.choices import Value
from attentest_spec.choices.attention import ATTENTION
from attentest_spec.choices.decoder_only import DECODER_ONLY
from attentest_spec.choices.language_model import LANGUAGE_MODEL
from attentest_spec.torch import of_function

NUMBERS: dict[str, tuple[float, ...]] = {
    "norm_epsilon": (1e-5, 1e-6, 1e-12, 1e-3, 0.02, 3.7e-7, 0.0),
    "position_offset": (1.0, 2.0),
    "rms_epsilon": (1e-5, 1e-6, 1e-8, 1e-3),
    "mask_fill": (-1e9, -1e4, -12345.678, -30.0, -0.5, -1e20),
}
MEASURABLE = [choice for choice in CHOICES.values() if choice.name in REACH]
"""The choices that numbers show: not those of decoding, whose results are tokens."""

OPTIONS = [
    (choice.name, value)
    for choice in MEASURABLE
    for value in (*(option.name for option in choice.options), *NUMBERS.get(choice.name, ()))
]
LIE: dict[str, Value] = {
    "norm_placement": "pre",
    "final_norm": "present",
    "norm_epsilon_place": "added-to-deviation",
    "norm_variance": "unbiased",
    "norm_epsilon": 0.3,
    "norm_bias": "none",
    "norm_sharing": "shared",
    "embedding_scale": "none",
    "positional_encoding": "learned",
    "position_offset": 3.0,
    "position_arithmetic": "float32",
    "embedding_norm": "present",
    "head_width": "d",
    "mask_fill": -7.0,
    "fully_masked_row": "zero",
    "softmax_arithmetic": "float32",
    "activation": "silu",
    "feed_forward_bias": "none",
    "projection_bias": "none",
    "logit_scale": "inverse-sqrt-d",
    "output": "logits",
    "generator_bias": "none",
    "tying": "target-and-output",
    "padding_side": "left",
    "sequence_marks": "end",
    "loss_input": "probabilities",
    "smoothed_mass": "other-words",
    "loss_normaliser": "none",
    "loss_measure": "divergence",
    "loss_without_targets": "nan",
    "schedule": "linear",
    "first_step": "zero",
    "adam_beta1": 0.5,
    "adam_beta2": 0.7,
    "adam_epsilon": 1e-3,
    "adam_epsilon_place": "inside-root",
    "bias_correction": "none",
    "weight_decay": "coupled",
    "clip_epsilon": 0.3,
    "key_heads": "fewer",
    "attention_causality": "built-in",
    "feed_forward_gate": "gated",
    "rms_epsilon_place": "added-to-rms",
    "rms_epsilon": 0.3,
    "rms_weight": "one-plus-weight",
    "rms_bias": "present",
    "rms_arithmetic": "float32",
    "rotary_pairs": "halves",
    "rotary_base": 500_000.0,
    "rotary_width": 0.5,
    "rotary_partial": "proportional",
    "rotary_scaling": "llama3",
    "rotary_magnitude": 1.5,
    "rotary_direction": "backward",
    "rotary_arithmetic": "float32",
}


SHOWN_WITH: dict[str, dict[str, Value]] = {
    "rotary_partial": {"rotary_width": 0.5},
    "rotary_magnitude": {"rotary_scaling": "yarn"},
}
"""Other choices with which a choice shows at all."""


def built(specimen: str, choices: dict[str, Value]) -> Any:
    return reference_backend(REFERENCE_MODELS[specimen], choices)


def true(specimen: str, choices: dict[str, Value]) -> dict[str, Value]:
    """Return what a specimen does, the rows it makes no promise about included."""
    every = built(specimen, choices).choices
    rest = {name: CHOICES[name].first for name in CHOICES if name not in every}
    known = {**rest, **every}
    if known["fully_masked_row"] == "unspecified":
        finite = known["mask_fill"] != "exact"
        known["fully_masked_row"] = (
            "zero" if specimen == "fused" else "uniform" if finite else "nan"
        )
    if known["loss_without_targets"] == "unspecified":
        known["loss_without_targets"] = "zero"
    return known


def wrong(found: dict[str, Finding], truth: dict[str, Value]) -> list[str]:
    """Return what was measured wrong, or not measured without one of the true reasons."""
    return [
        f"{name}: is {truth[name]}, found {one.measured} ({one.status}: {one.reason})"
        for name, one in found.items()
        if name in REACH and not (same(one.measured, truth[name]) or untellable(one, truth))
    ]


def untellable(one: Finding, truth: dict[str, Value]) -> bool:
    """Say whether two options are the same function here: an epsilon of 0 has no place.

    Nor has one before or after a correction that there is not; a constant rate has no first step.
    Where the whole head is turned there is no part; only one scaling multiplies sines and cosines.

    In a model that is all there is, a softmax in float32 rounds as much as the positions do.
    """
    rounded = truth["softmax_arithmetic"] == "float32"
    positions = truth["positional_encoding"]
    alike = {
        "norm_epsilon_place": truth["norm_epsilon"] == 0,
        "position_offset": positions == "none",
        "position_arithmetic": rounded or positions in ("none", "learned", "learned-scaled"),
        "softmax_arithmetic": rounded and truth["position_arithmetic"] == "float32",
        "first_step": truth["schedule"] == "constant",
        "adam_epsilon_place": truth["bias_correction"] == "none",
        "rotary_partial": truth["rotary_width"] == "whole",
        "rotary_magnitude": truth["rotary_scaling"] != "yarn",
    }
    return (
        one.status == CANNOT_TELL and "same numbers" in one.reason and alike.get(one.choice, False)
    )


def sole(backend: Any, component: str) -> Any:
    return replace(backend, recipes={component: backend.recipes[component]})


SMALL = (
    "attention",
    "multi_head_attention",
    "positional_encoding",
    "embedding",
    "layer_norm",
    "feed_forward",
    "residual",
    "generator",
)
"""Components that show all choices but those of whole stacks and models."""

AROUND = {
    *("embedding_scale", "positional_encoding", "position_offset", "position_arithmetic"),
    *("embedding_norm", "logit_scale", "output", "generator_bias", "tying"),
}
"""Choices of what stands around the stacks."""

OF_MODELS = set(axes_of("model"))
"""Choices that a whole model shows: not those of its loss."""

OF_SMOOTHING = {"smoothed_mass", "loss_measure"}
"""Choices that a loss without label smoothing does not show."""

FINDABLE = {
    "encoder_layer": OF_MODELS - {"final_norm", *AROUND},
    "decoder": OF_MODELS - AROUND,
    "layer_norm": {"norm_epsilon_place", "norm_variance", "norm_epsilon", "norm_bias"},
    "model": OF_MODELS,
}


MEASURED_IN = [
    item(name, value, model, name=f"{name}={value}-{model}", unit=model == unit_model)
    for name, value in OPTIONS
    for unit_model in [one_of(REFERENCE_MODELS, f"{name}={value}")]
    for model in REFERENCE_MODELS
]


@pytest.mark.parametrize(("name", "value", "specimen"), MEASURED_IN)
def test_every_option_is_measured_whatever_is_declared(name, value, specimen):
    choices = {**SHOWN_WITH.get(name, {}), name: value}
    truth = true(specimen, choices)
    liar = replace(built(specimen, choices), choices=LIE)
    components = (*SMALL, *REACH[name])
    shown = {choice for component in components for choice in axes_of(component)}
    found = identify(liar, components)
    assert wrong({choice: found[choice] for choice in shown}, truth) == []
    assert found[name].agrees == (LIE[name] in (truth[name], "unspecified"))


def drawn(seed: int) -> dict[str, Value]:
    rng = np.random.default_rng(seed)
    choices: dict[str, Value] = {}
    for choice in CHOICES.values():
        if choice in (*DECODER_ONLY, *ATTENTION, *LANGUAGE_MODEL):
            continue  # measured one by one, in the components that have them, or not at all
        names = [option.name for option in choice.options]
        values = [*names, *NUMBERS.get(choice.name, ())]
        choices[choice.name] = values[rng.integers(len(values))]
    return choices


@pytest.mark.parametrize("seed", study(range(16), share=3))
def test_deviations_in_many_choices_at_once_are_measured(seed):
    choices, declared = drawn(seed), drawn(seed + 1000)
    specimen = ("plain", "fused")[seed % 2]
    liar = replace(built(specimen, choices), choices=declared)
    found = identify(liar)
    assert wrong(found, true(specimen, choices)) == []
    assert all(one.status == CANNOT_TELL or one.components for one in found.values())


@pytest.mark.parametrize("component", FINDABLE)
@pytest.mark.parametrize("seed", range(100, 102))
def test_component_alone_shows_all_that_it_contains(component, seed):
    choices, declared = drawn(seed), drawn(seed + 1000)
    specimen = ("plain", "fused")[seed % 2]
    liar = sole(replace(built(specimen, choices), choices=declared), component)
    found = identify(liar)
    shown = {name: one for name, one in found.items() if name in FINDABLE[component]}
    assert wrong(shown, true(specimen, choices)) == []
    rest = [one for name, one in found.items() if name not in FINDABLE[component]]
    assert {one.status for one in rest} <= {CANNOT_TELL}
    assert all(one.agrees for one in rest)


@pytest.mark.parametrize("name", OWN)
def test_installed_backends_are_as_they_declare(name):
    backend = registry.load(name)
    found = identify(backend)
    assert [one.choice for one in found.values() if not one.agrees] == []
    measured = {choice for choice, one in found.items() if one.status == MEASURED}
    shown = {axis for component in backend.components for axis in axes_of(component)}
    silent = OF_SMOOTHING if backend.limits.smoothing == 0 else set()
    if backend.choices.get("schedule") == "constant":
        silent = {*silent, "first_step"}
    if backend.choices.get("attention_rotary", "none") != "none":
        silent = {*silent, "mask_fill", "relative_bias"}
        shown |= set(TURNED)
    if "multi_head_attention" in backend.components:
        shown |= {"attention_rotary", "relative_bias"}
    assert measured == shown - silent
    declared = dict(backend.choices)
    kept = measured_choices(backend).as_dict()
    assert [name for name, value in declared.items() if not same(kept[name], value)] == []


def broken(component: str, call: Callable[..., Any]) -> Any:
    whole = built("plain", {})
    recipe = replace(whole.recipes[component], call=call)
    return replace(whole, recipes={component: recipe})


FAULTY = {
    "layer_norm": (
        lambda part, x: part.gain * x / x.pow(2).mean(-1, keepdim=True).sqrt() + part.bias,
        "norm_variance",
    ),
    "feed_forward": (lambda part, x: part(x.tanh()), "activation"),
    "embedding": (lambda part, tokens: part(tokens) * 1.5, "embedding_scale"),
    "positional_encoding": (lambda part, x: 2 * part(x) - x, "positional_encoding"),
    "generator": (lambda part, x: part(-x), "output"),
    "multi_head_attention": (lambda part, *given: part(*given) * 1.25, "projection_bias"),
    "encoder_layer": (lambda part, x, mask: part(x, mask) + 0.01 * x, "norm_placement"),
}


@pytest.mark.parametrize("component", FAULTY)
def test_numbers_of_no_option_fit_none(component):
    call, name = FAULTY[component]
    found = identify(broken(component, call))
    assert found[name].status == NONE_FITS
    assert found[name].measured is None
    assert found[name].difference is not None
    assert found[name].difference > 1e-4
    assert {one.measured for one in found.values()} == {None}
    assert found[name].agrees == (found[name].expected is None)


def test_choices_around_a_wrong_sublayer_are_measured():
    options = {"norm_placement": "pre", "embedding_scale": "none"}
    wrong = with_faults(REFERENCE_MODELS["plain"], faults()["attention.scale-missing"])
    found = identify(reference_backend(wrong, {**options, "final_norm": "present"}), ("model",))
    assert {name: found[name].measured for name in options} == options
    assert found["activation"].measured == "relu"
    assert found["softmax_arithmetic"].measured is None


def test_fill_that_is_added_is_not_called_a_number():
    def call(part: Any, query: Any, key: Any, value: Any, mask: Any) -> Any:
        scores = query @ key.mT / query.shape[-1] ** 0.5
        weights = (scores + (~mask * -1e4 if mask is not None else 0.0)).softmax(-1)
        return weights @ value, weights

    assert identify(broken("attention", call))["mask_fill"].status == NONE_FITS


def test_mask_that_is_ignored_is_not_called_a_fill():
    def call(part: Any, query: Any, key: Any, value: Any, mask: Any) -> Any:
        return part(query, key, value, None)

    assert identify(broken("attention", call))["mask_fill"].status == NONE_FITS


def test_component_of_another_option_than_the_rest_is_reported():
    pre = built("plain", {"norm_placement": "pre"}).recipes["encoder_layer"]
    whole = built("plain", {})
    mixed = replace(whole, recipes={**whole.recipes, "encoder_layer": pre})
    found = identify(mixed, ("residual", "encoder_layer"))["norm_placement"]
    assert found.status == NONE_FITS
    assert not found.agrees
    assert "post in residual; pre in encoder_layer" in found.reason


def test_parameters_tied_in_no_listed_way_are_reported():
    whole = built("plain", {"tying": "none"})
    recipe = whole.recipes["model"]

    def build(sizes: Any) -> Any:
        model = recipe.build(sizes)
        model.generator.weight = model.source_embedding.weight
        return model

    mixed = replace(whole, recipes={"model": replace(recipe, build=build)})
    assert identify(mixed)["tying"].status == NONE_FITS


def test_function_without_a_parameter_map_cannot_be_identified():
    bare = of_function(lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]), "layer_norm")
    found = identify(bare)["norm_epsilon"]
    assert found.status == CANNOT_TELL
    assert found.reason == "layer_norm has no parameter map"
    assert found.agrees


@pytest.mark.parametrize("mishap", [RuntimeError("out of luck"), SystemExit(7)])
def test_backend_that_raises_is_not_identified_and_does_no_harm(mishap):
    def call(*given: Any) -> Any:
        raise mishap

    found = identify(broken("embedding", call))["embedding_scale"]
    assert found.status == CANNOT_TELL
    assert type(mishap).__name__ in found.reason


def test_one_head_does_not_show_the_width_of_heads():
    narrow = replace(built("plain", {}), limits=Limits(heads=1))
    assert identify(narrow, ("multi_head_attention",))["head_width"].status == CANNOT_TELL


def test_limits_are_respected():
    limits = Limits(layers=1, masks=("causal",), precisions=("float32",), length=4)
    narrow = replace(built("fused", {"norm_epsilon": 1e-3, "mask_fill": -1e4}), limits=limits)
    found = identify(narrow)
    assert found["mask_fill"].measured == -1e4
    assert same(found["norm_epsilon"].measured, 1e-3)
    assert found["final_norm"].measured == "none"


def test_backend_behind_no_torch_glue_is_identified():
    found = identify(miniatures.good)
    assert found["mask_fill"].measured == "exact"
    assert found["fully_masked_row"].measured == "nan"


def test_measured_choices_fall_back_to_declared_ones():
    mute = replace(
        sole(built("plain", {"norm_epsilon": 1e-3, "norm_variance": "unbiased"}), "layer_norm"),
        choices={"output": "logits"},
    )
    choices = measured_choices(mute)
    assert choices == Choices(norm_epsilon=1e-3, norm_variance="unbiased", output="logits")


@pytest.mark.parametrize("epsilon", [1e-6, 0.02])
def test_undeclared_formula_is_settled_by_identification(epsilon):
    backend = built("plain", {"norm_epsilon": epsilon, "norm_variance": "unbiased"})
    undeclared = replace(backend, choices={"norm_epsilon_place": "inside-root"})
    assert effective_choices(undeclared) == Choices(norm_epsilon=epsilon, norm_variance="unbiased")
