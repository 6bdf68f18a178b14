"""Identification: the numbers show every option, whatever is declared."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from own import OWN
from proof import in_share, item, one_of, share
from reference_backends import built, sole

from attentest.analysis.identify import (
    CANNOT_TELL,
    MEASURED,
    Finding,
    identify,
    measured_choices,
)
from attentest.analysis.identify.attending import TURNED
from attentest.analysis.identify.finding import same
from attentest.analysis.identify.language import AXES
from attentest.analysis.identify.parts import has
from attentest.analysis.identify.reach import OF_KIND, REACH, axes_of
from attentest.faults.reference_models import REFERENCE_MODELS
from attentest_spec import CHOICES, registry
from attentest_spec.choices import Value
from attentest_spec.choices.attention import ATTENTION
from attentest_spec.choices.decoder_only import DECODER_ONLY
from attentest_spec.choices.experts import EXPERTS
from attentest_spec.choices.language_model import LANGUAGE_MODEL

NUMBERS: dict[str, tuple[float, ...]] = {
    "norm_epsilon": (1e-5, 1e-6, 1e-12, 1e-3, 0.02, 3.7e-7, 0.0),
    "position_offset": (1.0, 2.0),
    "rms_epsilon": (1e-5, 1e-6, 1e-8, 1e-3),
    "routing_scale": (2.5, 16.0),
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
    "norm_kind": "rms",
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
    "router_scores": "sigmoid",
    "routing_weights": "as-scored",
    "router_bias": "in-scores",
    "shared_expert": "gated",
    "routing_scale": 1.5,
    "routing_arithmetic": "float32",
}


SHOWN_WITH: dict[str, dict[str, Value]] = {
    "rotary_partial": {"rotary_width": 0.5},
    "rotary_magnitude": {"rotary_scaling": "yarn"},
}
"""Other choices with which a choice shows at all."""


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
    item(
        name,
        value,
        model,
        name=f"{name}={value}-{model}",
        unit=model == first and in_share(f"{name}={value}", 8),
        rest=8 if model == first else 32,
    )
    for name, value in OPTIONS
    for first in [one_of(REFERENCE_MODELS, f"{name}={value}")]
    for model in REFERENCE_MODELS
]


def of_other_norms(components, truth):
    """Return the choices of norms that layers with norms of the kind of `truth` do not show."""
    shown = {axis for one in components if not has(one, "residual") for axis in axes_of(one)}
    other = {"layer": "rms", "rms": "layer"}[truth.get("norm_kind", "layer")]
    return {*OF_KIND[other]} - shown


@pytest.mark.parametrize(("name", "value", "specimen"), MEASURED_IN)
def test_every_option_is_measured_whatever_is_declared(name, value, specimen):
    choices = {**SHOWN_WITH.get(name, {}), name: value}
    truth = true(specimen, choices)
    liar = replace(built(specimen, choices), choices=LIE)
    components = (*SMALL, *REACH[name])
    shown = {choice for component in components for choice in axes_of(component)}
    shown -= of_other_norms(components, truth)
    found = identify(liar, components)
    assert wrong({choice: found[choice] for choice in shown}, truth) == []
    assert found[name].agrees == (LIE[name] in (truth[name], "unspecified"))


OF_LATER_MODELS = [
    {"norm_placement": "post", "rms_epsilon": 3e-5, "rms_epsilon_place": "added-to-rms"},
    {"rms_arithmetic": "float32", "feed_forward_gate": "gated", "activation": "silu"},
    {"rms_weight": "one-plus-weight", "attention_rotary": "query-and-key"},
    {"rms_bias": "present", "rms_epsilon_place": "floor-of-length", "rms_epsilon": 1e-12},
]


@share(5)
@pytest.mark.parametrize("choices", OF_LATER_MODELS, ids=range(4))
@pytest.mark.parametrize(
    "component", ["residual", "encoder_layer", "encoder", "decoder_layer", "decoder"]
)
def test_rms_norms_of_layers_are_measured(component, choices):
    said = {"norm_kind": "rms", "norm_placement": "pre", **choices}
    found = identify(sole(replace(built("fused", said), choices=LIE), component))
    beyond = set(said) - set(axes_of(component)) if component == "residual" else set()
    assert {name: found[name].measured for name in said if name not in beyond} == {
        name: value for name, value in said.items() if name not in beyond
    }


def drawn(seed: int) -> dict[str, Value]:
    rng = np.random.default_rng(seed)
    choices: dict[str, Value] = {}
    for choice in CHOICES.values():
        if choice in (*DECODER_ONLY, *ATTENTION, *LANGUAGE_MODEL, *EXPERTS):
            continue  # measured one by one, in the components that have them, or not at all
        names = [option.name for option in choice.options]
        values = [*names, *NUMBERS.get(choice.name, ())]
        choices[choice.name] = values[rng.integers(len(values))]
    return choices


@pytest.mark.proof
@share(16, rest=16)
@pytest.mark.parametrize("seed", range(16))
def test_deviations_in_many_choices_at_once_are_measured(seed):
    choices, declared = drawn(seed), drawn(seed + 1000)
    specimen = ("plain", "fused")[seed % 2]
    liar = replace(built(specimen, choices), choices=declared)
    found = identify(liar)
    assert wrong(found, true(specimen, choices)) == []
    assert all(one.status == CANNOT_TELL or one.components for one in found.values())


@pytest.mark.proof
@share(4)
@pytest.mark.parametrize(("component", "seed"), list(product(FINDABLE, range(100, 102))))
def test_component_alone_shows_all_that_it_contains(component, seed):
    choices, declared = drawn(seed), drawn(seed + 1000)
    specimen = ("plain", "fused")[seed % 2]
    liar = sole(replace(built(specimen, choices), choices=declared), component)
    found, truth = identify(liar), true(specimen, choices)
    findable = FINDABLE[component] - of_other_norms([component], truth)
    shown = {name: one for name, one in found.items() if name in findable}
    assert wrong(shown, truth) == []
    rest = [one for name, one in found.items() if name not in findable]
    assert {one.status for one in rest} <= {CANNOT_TELL}
    assert all(one.agrees for one in rest)


@pytest.mark.proof
@share(8)
@pytest.mark.parametrize("name", OWN)
def test_installed_backends_are_as_they_declare(name):
    backend = registry.load(name)
    found = identify(backend)
    assert [one.choice for one in found.values() if not one.agrees] == []
    measured = {choice for choice, one in found.items() if one.status == MEASURED}
    shown = {axis for component in backend.components for axis in axes_of(component)}
    shown -= of_other_norms(backend.components, backend.choices)
    silent = OF_SMOOTHING if backend.limits.smoothing == 0 else set()
    if backend.choices.get("schedule") == "constant":
        silent = {*silent, "first_step"}
    if backend.choices.get("attention_rotary", "none") != "none":
        silent = {*silent, "mask_fill", "relative_bias"}
        shown |= set(TURNED)
    if backend.choices.get("rotary_width", "whole") == "whole":
        silent = {*silent, "rotary_partial", "rotary_magnitude"}
    if "multi_head_attention" in backend.components:
        shown |= {"attention_rotary", "relative_bias"}
    whole = set(AXES) if "language_model" in backend.components else set()
    assert measured - whole == shown - silent - whole
    assert {found[axis].status for axis in whole} <= {MEASURED, CANNOT_TELL}
    declared = dict(backend.choices)
    kept = measured_choices(backend).as_dict()
    assert [name for name, value in declared.items() if not same(kept[name], value)] == []
