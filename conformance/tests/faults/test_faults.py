"""The suite against its own faults: each is detected where it is, and nowhere else."""

import ast
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from component_inputs import SIZES, inputs_of
from proof import in_share, item, one_of, share

import attentest.faults
from attentest.faults import Fault, fault, fault_of, faults, inject, with_faults
from attentest.faults.reference_models import REFERENCE_MODELS, Hooks, hook_names, reference_backend
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec import COMPONENTS, Choices, UnknownName
from attentest_spec.clauses import clauses
from attentest_spec.parameters import draw

torch.set_num_threads(1)

CATALOGUE = Path(attentest.faults.__file__).parent
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def unit_model(one: Fault) -> str:
    """Return the reference model in which the unit tests inject a fault."""
    return one_of(one.models, one.slug)


INJECTED = [
    item(one, model, name=f"{model}-{one.slug}", unit=model == unit_model(one), rest=16)
    for one in faults().values()
    for model in one.models
]
CONFORMING = [
    item(
        clause,
        model,
        name=f"{model}-{clause}",
        unit=model == one_of(REFERENCE_MODELS, clause) and in_share(clause, 4),
        rest=16,
    )
    for clause in clauses()
    for model in REFERENCE_MODELS
]


def _judged(backend, clause):
    return judge(Bench.for_status(backend, loader="backend = .."), clause)


@cache
def _detected(slug, model, clause):
    """Return the verdict of a clause on a fault; two tests ask for most of them."""
    return _judged(inject(fault_of(slug), model), clause)


@pytest.mark.parametrize(("clause", "model"), CONFORMING)
def test_reference_model_conforms(model, clause):
    """Under the choices of the clause's own faults, where it needs others than the default."""
    verdict = _judged(reference_backend(REFERENCE_MODELS[model]), clause)
    if verdict.status == "absent":
        own = next(one for one in faults().values() if one.clause == clause)
        verdict = _judged(reference_backend(REFERENCE_MODELS[model], own.choices), clause)
    assert verdict.status in ("pass", "deviation"), verdict.message


@pytest.mark.parametrize(("one", "model"), INJECTED)
def test_fault_is_detected_by_its_clause(one: Fault, model):
    verdict = _detected(one.slug, model, one.clause)
    warned = clauses()[one.clause].level == "SHOULD" or one.kind == "wording"
    # Where lengths agree by chance, a loud fault gives wrong numbers instead of an exception.
    expected = (
        {"error", "violation"} if one.kind == "loud" else {"warning" if warned else "violation"}
    )
    assert verdict.status in expected, verdict.message


SECOND = {
    "batch.decoder-target": "batch.shifted-twice",
    "cache.batch": "cache.source-padding-of-the-first-row",
    "cache.beyond-length": "cache.source-padding-in-later-steps",
    "cache.dropout-off": "cache.source-padding-in-later-steps",
    "cache.half-precision": "cache.source-padding-in-later-steps",
    "cache.new-parameters": "cache.source-padding-in-later-steps",
    "cache.own-cache": "cache.source-padding-in-later-steps",
    "cache.rows-once": "cache.last-sentence-kept",
    "cache.sessions": "cache.source-padding-in-later-steps",
    "cache.shapes": "cache.memory-never-reset",
    "cache.single-precision": "cache.source-padding-in-later-steps",
    "decoding.sampling-filtered-zero": "decoding.temperature-plus-epsilon",
    "initialisation.centred": "initialisation.ones",
    "initialisation.constructions-differ": "layer_norm.parameters-plain",
    "initialisation.generator": "layer_norm.parameters-plain",
    "initialisation.matrices-differ": "initialisation.ones",
    "initialisation.rows-differ": "initialisation.ones",
    "language_model.cached-batch": "language_model.cached-as-query-heads",
    "language_model.cached-rows-once": "language_model.cached-as-query-heads",
    "language_model.cached-shapes": "language_model.cached-as-query-heads",
    "language_model.document-alone": "language_model.documents-leak",
    "layer_norm.constant-row-half-precision": "layer_norm.no-epsilon",
    "layer_norm.half-precision": "layer_norm.output-written-back",
    "layer_norm.half-precision-large": "layer_norm.epsilon-lost-in-half",
    "layer_norm.norm-bias": "layer_norm.no-epsilon",
    "loss.slices-accepted": "loss.padding-overwritten",
    "model.indivisible-width-refused": "model.layers-in-a-list",
    "model.out-of-range-named": "model.pads-overwritten",
    "model.too-long-input-named": "model.pads-overwritten",
    "model.unlike-vocabularies-named": "model.sizes-asserted",
    "positional_encoding.moved-once": "positional_encoding.single-sample-squeezed",
    "positional_encoding.too-long-named": "positional_encoding.single-sample-squeezed",
    "rms_norm.half-precision": "rms_norm.weight-dropped",
    "rms_norm.half-precision-large": "rms_norm.epsilon-lost-in-half",
    "rms_norm.zero-row-finite": "rms_norm.weight-plain",
    "rms_norm.zero-row-gradient": "rms_norm.no-epsilon",
    "rms_norm.zero-row-half-precision": "rms_norm.no-epsilon",
    "rotary.follows-moves": "rotary.turned-in-place",
    "rotary.moved-once": "rotary.turned-in-place",
}
"""The second fault that a clause detects, where many would be tried before it."""


@pytest.mark.parametrize("clause", clauses())
def test_clause_detects_two_faults(clause):
    chapter = clause.split(".")[0]
    known = [one for one in faults().values() if one.reaches(clauses()[clause].component)]
    first = SECOND.get(clause)
    known.sort(key=lambda one: (one.clause != clause, one.slug != first, one.chapter != chapter))
    assert known
    assert known[0].clause == clause, f"No fault is the clause's own: {clause}"
    detected = []
    for one in known:
        status = _detected(one.slug, unit_model(one), clause).status
        if status in ("violation", "warning", "error"):
            detected.append(one.slug)
        if len(detected) == 2:
            return
    pytest.fail(f"{clause} detects {detected or 'no fault'} alone")


@share(8)
@pytest.mark.parametrize(("one", "model"), INJECTED)
def test_fault_stays_in_its_component(one: Fault, model):
    backend = inject(one, model)
    for component in COMPONENTS:
        if not one.reaches(component):
            correct, hooks = _correct_answers(model, _relevant(one, model, component), component)
            if one.seam in hooks:  # one that is never looked up changes nothing
                for before, after in zip(correct, _answers(backend, component), strict=True):
                    np.testing.assert_array_equal(before, after, err_msg=component)


def _relevant(one: Fault, model, component):
    """Return the choices of a fault, () where a part looks up none of them: it gives the same."""
    relevant = not _looked_up(model, component).isdisjoint(one.choices)
    return tuple(one.choices.items()) if relevant else ()


@cache
def _looked_up(model, component):
    """Return the names of the choices that a part depends on, under the default ones."""
    names = {"key_heads"}  # which the backend looks up, to build at other sizes

    class Watched(Choices):
        def __getattribute__(self, name):
            names.add(name)
            return super().__getattribute__(name)

        def but(self, **changes):
            return Watched(**{**self.as_dict(), **changes})

    class Model(REFERENCE_MODELS[model]):
        def __init__(self, sizes, choices):
            super().__init__(sizes, Watched(**choices.as_dict()))

    backend = reference_backend(Model)
    watched = Watched(**backend.choices)
    names.intersection_update({"key_heads"})  # without those that it checks when it is made
    draw(component, SIZES, watched, np.random.default_rng(5))
    _answers(backend, component)
    return frozenset(names)


@cache
def _correct_answers(model, choices, component):
    """Return the answers of a part without a fault, and the names that it looks up in its hooks."""
    names = set()

    class Watched(REFERENCE_MODELS[model]):
        def __getattribute__(self, name):
            names.add(name)
            return super().__getattribute__(name)

    return _answers(reference_backend(Watched, dict(choices)), component), names


LATER = {"norm_kind": "rms", "norm_placement": "pre", "attention_rotary": "query-and-key"}
ANOTHER_THERE = {
    "residual.pre-for-post",
    "residual.norm-never-called",
    "residual.norm-detached",
    "encoder.pre-for-post",
    "encoder.keys-before-values",
    "encoder.positions-in-every-layer",
    "model.positions-on-target-alone",
    "model.position-zero-for-all",
}
"""Faults of a norm after the sum, and of the order, which are others under :data:`LATER`."""


def _of_layers(one):
    layers = ("residual", "encoder_layer", "encoder", "decoder_layer", "decoder")
    own = LATER.items() <= {**LATER, **one.choices}.items() and one.slug not in ANOTHER_THERE
    return own and clauses()[one.clause].component in layers


@share(24, rest=2)
@pytest.mark.parametrize("slug", [one.slug for one in faults().values() if _of_layers(one)])
def test_fault_of_a_layer_is_detected_in_layers_of_later_models(slug):
    one = fault_of(slug)
    wrong = inject(replace(one, choices={**one.choices, **LATER}), unit_model(one))
    assert _judged(wrong, one.clause).status in ("violation", "error", "warning")


def test_fault_that_changes_other_components_is_noticed():
    narrow = replace(fault_of("attention.scale-missing"), components=("layer_norm",))
    with pytest.raises(AssertionError, match="attention"):
        test_fault_stays_in_its_component(narrow, "plain")


@pytest.mark.parametrize("model", REFERENCE_MODELS)
def test_a_watched_model_shows_the_hooks_of_a_component(model):
    correct, hooks = _correct_answers(model, (), "encoder_layer")
    backend = reference_backend(REFERENCE_MODELS[model])
    for one, other in zip(correct, _answers(backend, "encoder_layer"), strict=True):
        np.testing.assert_array_equal(one, other)
    inner = {"encoder_layer", "make_encoder_layer", "attention", "feed_forward", "dropout"}
    assert inner <= hooks & set(hook_names())
    assert not hooks & {"encoder", "decoder_layer", "generator", "embedding"}


def _answers(backend, component):
    """Return what a part gives in evaluation mode, in training mode, and as gradients."""
    rng = np.random.default_rng(5)
    part = backend.build(component, SIZES.but(dropout=0.5))
    part.load(draw(component, SIZES, Choices.of(backend.choices), rng))
    inputs = inputs_of(component, SIZES, rng)
    output = _first(part(*inputs))
    pulled = part.vjp(inputs, np.ones(output.shape)).inputs if output.dtype == np.float64 else ()
    part.train()
    torch.default_generator.manual_seed(0)  # the function of torch writes a traceback at each call
    trained = _first(part(*inputs))
    return [output, trained, *(one for one in pulled if one is not None)]


def _first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
@pytest.mark.parametrize("model", REFERENCE_MODELS)
def test_copies_keep_their_fault(model, how):
    part = inject(fault_of("attention.scale-missing"), model).build("model", SIZES)
    inputs = inputs_of("model", SIZES, np.random.default_rng(2))
    np.testing.assert_array_equal(part.copied(how)(*inputs), part(*inputs))
    assert type(part.copied(how)._built.how).scale is not REFERENCE_MODELS[model].scale


def test_faults_are_well_formed():
    for slug, one in faults().items():
        assert one.clause in clauses(), slug
        assert one.chapter == one.clause.split(".")[0], slug
        assert set(one.changes) <= set(COMPONENTS), slug
        assert one.wrong.endswith("."), slug
        assert one.effect.endswith("."), slug
        assert one.origin, slug
        Choices.of(one.choices)
    assert clauses().keys() >= SECOND.keys()
    assert faults().keys() >= set(SECOND.values())


def test_class_with_a_fault_is_made_once_unless_it_may_keep_state():
    plain = REFERENCE_MODELS["plain"]
    scale, kept = fault_of("attention.scale-missing"), fault_of("schedule.settings-in-the-class")
    assert with_faults(plain, scale) is with_faults(plain, scale)
    assert with_faults(plain, scale) is not with_faults(REFERENCE_MODELS["fused"], scale)
    assert with_faults(plain, kept) is not with_faults(plain, kept)


def test_backend_is_named_after_model_and_fault():
    backend = inject(fault_of("attention.scale-missing"), "fused")
    assert backend.name == "fused+attention.scale-missing"


def test_unknown_fault_names_the_nearest():
    with pytest.raises(UnknownName, match=r"attention\.scale-missing"):
        fault_of("attention.scale-mising")


def one_half(self: Hooks, width, heads):
    """The scale is one half. Scores do not depend on the width."""
    return 0.5


def test_fault_overrides_a_hook_that_exists():
    with pytest.raises(UnknownName, match="scale"):
        fault("x.y", "formula", seam="scal")(one_half)


def test_second_fault_of_one_name_is_refused():
    with pytest.raises(ValueError, match="two faults"):
        fault("attention.scale-missing", "formula", seam="scale")(one_half)


@pytest.mark.parametrize("text", [None, "", "The scale is one half.", "The scale is one half. And"])
def test_fault_without_a_description_is_refused(text):
    def undescribed(self: Hooks, width, heads):
        return 0.5

    undescribed.__doc__ = text
    with pytest.raises(ValueError, match=r"undescribed.*docstring"):
        fault("x.y", "formula", seam="scale")(undescribed)


def test_fault_takes_its_words_from_the_docstring():
    scale = fault_of("attention.scale-missing")
    assert (scale.clause, scale.seam) == ("attention.formula", "scale")
    paragraphs = scale.override.__doc__.split("\n\n")
    assert [" ".join(one.split()) for one in paragraphs] == [scale.wrong, scale.effect]


def test_catalogue_disables_no_checker():
    for path in sorted(CATALOGUE.rglob("*.py")):
        text = path.read_text()
        assert not re.search(r"#\s*(ruff|mypy|type):\s*(noqa|disable|ignore-errors)", text), path
        assert not re.search(r"#\s*noqa|#\s*type:\s*ignore(?!\[)", text), path
        names = [one.name for one in ast.parse(text).body if isinstance(one, DEFINITIONS)]
        assert len(names) == len(set(names)), path


def test_catalogue_functions_are_named_after_their_fault():
    for slug, one in faults().items():
        assert one.override.__name__ == slug.partition(".")[2].replace("-", "_")
        assert one.seam in hook_names()


def test_catalogue_loads_every_module_of_its_chapters():
    faults()
    apart = {"reference_models", "unusual"}
    for path in CATALOGUE.rglob("*.py"):
        parts = path.relative_to(CATALOGUE).with_suffix("").parts
        if parts[0] not in apart and parts[-1] != "__init__":
            assert ".".join(("attentest.faults", *parts)) in sys.modules


@pytest.mark.proof
def test_catalogue_is_loaded_on_demand():
    code = (
        "import sys, attentest.faults as f; assert 'attentest.faults.attention' not in sys.modules;"
        "f.faults(); assert 'attentest.faults.attention.scores' in sys.modules;"
        "assert 'attentest.faults.unusual' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
