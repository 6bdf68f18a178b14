"""The suite against its own faults: each is caught, where it is and nowhere else."""

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from test_specimens import SIZES, inputs_of

import attentest.faults
from attentest.faults import Fault, fault, fault_of, faults, planted
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.specimens import SPECIMENS, Seams, seam_names, specimen_backend
from attentest_spec import COMPONENTS, Choices, UnknownName
from attentest_spec.clauses import clauses
from attentest_spec.parameters import draw

torch.set_num_threads(1)

CATALOGUE = Path(attentest.faults.__file__).parent
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
PLANTED = [
    pytest.param(one, specimen, id=f"{specimen}-{one.slug}")
    for one in faults().values()
    for specimen in one.specimens
]


def _judged(backend, clause):
    return judge(Bench(backend, shrink=False, diagnose=False), clause)


@pytest.mark.parametrize("specimen", SPECIMENS)
@pytest.mark.parametrize("clause", clauses())
def test_a_sound_specimen_passes(specimen, clause):
    verdict = _judged(specimen_backend(SPECIMENS[specimen]), clause)
    assert verdict.status in ("pass", "deviation"), verdict.message


@pytest.mark.parametrize(("one", "specimen"), PLANTED)
def test_a_fault_is_caught_by_its_clause(one: Fault, specimen):
    verdict = _judged(planted(one, specimen), one.clause)
    loud = one.kind == "loud"
    warned = clauses()[one.clause].level == "SHOULD"
    assert verdict.status == ("error" if loud else "warning" if warned else "violation"), (
        verdict.message
    )


@pytest.mark.parametrize("clause", clauses())
def test_two_faults_break_a_clause(clause):
    chapter = clause.split(".")[0]
    known = [one for one in faults().values() if one.reaches(clauses()[clause].component)]
    known.sort(key=lambda one: (one.clause != clause, one.chapter != chapter))
    assert known
    assert known[0].clause == clause, f"No fault is the clause's own: {clause}"
    found = []
    for one in known:
        status = _judged(planted(one, one.specimens[0]), clause).status
        if status in ("violation", "warning", "error"):
            found.append(one.slug)
        if len(found) == 2:
            return
    pytest.fail(f"{clause} is broken by {found or 'no fault'} alone")


@pytest.mark.parametrize(("one", "specimen"), PLANTED)
def test_a_fault_stays_in_its_component(one: Fault, specimen):
    backend = planted(one, specimen)
    for component in COMPONENTS:
        if not one.reaches(component):
            sound = _sound_answers(specimen, tuple(one.choices.items()), component)
            for before, after in zip(sound, _answers(backend, component), strict=True):
                np.testing.assert_array_equal(before, after, err_msg=component)


@cache
def _sound_answers(specimen, choices, component):
    return _answers(specimen_backend(SPECIMENS[specimen], dict(choices)), component)


def _answers(backend, component):
    """Return what a part gives in evaluation mode, in training mode, and as gradients."""
    rng = np.random.default_rng(5)
    part = backend.build(component, SIZES.but(dropout=0.5))
    part.load(draw(component, SIZES, Choices.of(backend.choices), rng))
    inputs = inputs_of(component, SIZES, rng)
    output = _first(part(*inputs))
    pulled = part.vjp(inputs, np.ones(output.shape)).inputs if output.dtype == np.float64 else ()
    part.train()
    torch.manual_seed(0)
    trained = _first(part(*inputs))
    return [output, trained, *(one for one in pulled if one is not None)]


def _first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
@pytest.mark.parametrize("specimen", SPECIMENS)
def test_copies_keep_their_fault(specimen, how):
    part = planted(fault_of("attention.scale-missing"), specimen).build("model", SIZES)
    inputs = inputs_of("model", SIZES, np.random.default_rng(2))
    np.testing.assert_array_equal(part.copied(how)(*inputs), part(*inputs))
    assert type(part.copied(how)._built.how).scale is not SPECIMENS[specimen].scale


@pytest.mark.parametrize("one", faults().values(), ids=lambda one: one.slug)
def test_a_fault_is_well_formed(one: Fault):
    assert clauses()[one.clause]
    assert one.chapter == one.clause.split(".")[0]
    assert set(one.changes) <= set(COMPONENTS)
    assert one.wrong.endswith(".")
    assert one.effect.endswith(".")
    assert one.origin
    Choices.of(one.choices)


def test_a_planted_backend_says_what_it_is():
    backend = planted(fault_of("attention.scale-missing"), "fused")
    assert backend.name == "fused+attention.scale-missing"


def test_an_unknown_fault_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match=r"attention\.scale-missing"):
        fault_of("attention.scale-mising")


def one_half(self: Seams, width, heads):
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
    def undescribed(self: Seams, width, heads):
        return 0.5

    undescribed.__doc__ = text
    with pytest.raises(ValueError, match=r"undescribed.*docstring"):
        fault("x.y", "formula", seam="scale")(undescribed)


def test_fault_takes_its_words_from_the_docstring():
    scale = fault_of("attention.scale-missing")
    assert (scale.clause, scale.seam) == ("attention.formula", "scale")
    paragraphs = scale.override.__doc__.split("\n\n")
    assert [" ".join(one.split()) for one in paragraphs] == [scale.wrong, scale.effect]


@pytest.mark.parametrize("path", sorted(CATALOGUE.rglob("*.py")), ids=lambda path: path.name)
def test_catalogue_disables_no_checker(path):
    text = path.read_text()
    assert not re.search(r"#\s*(ruff|mypy|type):\s*(noqa|disable|ignore-errors)", text)
    assert not re.search(r"#\s*noqa|#\s*type:\s*ignore(?!\[)", text)
    names = [one.name for one in ast.parse(text).body if isinstance(one, DEFINITIONS)]
    assert len(names) == len(set(names))


def test_catalogue_functions_are_named_after_their_fault():
    for slug, one in faults().items():
        assert one.override.__name__ == slug.partition(".")[2].replace("-", "_")
        assert one.seam in seam_names()
