"""Identification of wrong or narrow code: a choice that no option explains is not measured."""

from dataclasses import replace
from typing import Any

import miniatures
import numpy as np
import pytest
import torch
from reference_backends import broken, built, sole

from attentest.analysis.identify import (
    CANNOT_TELL,
    NONE_FITS,
    identify,
    measured_choices,
)
from attentest.analysis.identify.finding import same
from attentest.analysis.identify.measurement import Measurement
from attentest.analysis.identify.norms import options, variations
from attentest.analysis.identify.parts import Part
from attentest.analysis.identify.station import Station
from attentest.analysis.undeclared import effective_choices
from attentest.faults import faults, with_faults
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.harness.subject import Subject
from attentest_spec import Choices, Limits, Setting, Sizes
from attentest_spec.oracles import ORACLES
from attentest_spec.torch import of_function

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


@pytest.mark.proof
def test_choices_around_a_wrong_sublayer_are_measured():
    options = {"norm_placement": "pre", "embedding_scale": "none"}
    wrong = with_faults(REFERENCE_MODELS["plain"], faults()["attention.scale-missing"])
    found = identify(reference_backend(wrong, {**options, "final_norm": "present"}), ("model",))
    assert {name: found[name].measured for name in options} == options
    assert found["activation"].measured == "relu"
    assert found["softmax_arithmetic"].measured is None


def test_model_that_cannot_be_built_is_not_tried_in_every_structure() -> None:
    builds = 0

    def fails(sizes: Sizes) -> Any:
        nonlocal builds
        builds += 1
        raise SystemExit(7)

    backend = sole(built("fused", {}), "model")
    recipe = replace(backend.recipes["model"], build=fails)
    found = identify(replace(backend, recipes={"model": recipe}))
    assert found["norm_placement"].status == CANNOT_TELL
    assert "building model raised SystemExit: 7" in found["norm_placement"].reason
    assert builds == 2  # with as many heads of keys as of queries, and with fewer


def test_wrong_numbers_are_measured_in_one_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[Choices] = []
    take = Measurement.take

    def counted(measurement: Measurement) -> None:
        measured.append(measurement.part.choices)
        take(measurement)

    monkeypatch.setattr(Measurement, "take", counted)
    wrong = with_faults(REFERENCE_MODELS["plain"], faults()["attention.scale-missing"])
    found = identify(reference_backend(wrong), ("attention",))
    assert found["softmax_arithmetic"].status == NONE_FITS
    assert len(measured) == 1
    single = identify(built("plain", {"softmax_arithmetic": "float32"}), ("attention",))
    assert single["softmax_arithmetic"].measured == "float32"
    assert len(measured) == 3


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


@pytest.mark.proof
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


@pytest.mark.parametrize("failure", [RuntimeError("out of luck"), SystemExit(7)])
def test_backend_that_raises_is_not_identified_and_does_no_harm(failure):
    def call(*given: Any) -> Any:
        raise failure

    found = identify(broken("embedding", call))["embedding_scale"]
    assert found.status == CANNOT_TELL
    assert type(failure).__name__ in found.reason


def test_one_head_does_not_show_the_width_of_heads():
    narrow = replace(built("plain", {}), limits=Limits(heads=1))
    assert identify(narrow, ("multi_head_attention",))["head_width"].status == CANNOT_TELL


@pytest.mark.exhaustive
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


@pytest.mark.parametrize("component", ["model", "language_model"])
def test_predictions_that_share_a_state_are_those_of_the_reference(component):
    backend = reference_backend(REFERENCE_MODELS["plain"])
    probe = Subject(backend).part(component, Sizes(target_vocabulary=11))
    part = Part(component, probe, Choices.of(backend.choices))
    station = Station.of(probe, part.drawn(), part.inputs())
    tried = [*variations(part.choices, ["output", "logit_scale", "embedding_scale"])]
    tried += [one.but(logit_cap=3.0) for one in tried]
    for choices in tried:
        given = Setting(probe.sizes, choices, station.probe.parameters)
        expected = ORACLES[component](given, *station.inputs)
        np.testing.assert_array_equal(station.predicted(choices), expected)
    assert len(station.states) == len(options("embedding_scale"))
