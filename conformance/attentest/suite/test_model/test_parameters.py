"""Checks of the chapter `model`: parameters, tied ones and those at birth."""

from collections.abc import Callable
from math import prod

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.suite.test_model.cases import (
    draw_call,
    draw_untied_parameters,
    export_parameters,
    first_names,
    inventory,
    model_sizes,
    without_pads,
)
from attentest.testing.assertions import equal, finite, holds, matches
from attentest.testing.common import parameters_round_trip
from attentest.testing.draw import Draw
from attentest.testing.gradients import agrees_with_differences, gradient_of
from attentest.testing.refusal import explains_refusal, refuses
from attentest_spec import Sizes
from attentest_spec.parameters import count, one_vocabulary, tied


@check("model.tying", examples=2)
def test_tying(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, source_vocabulary=11, target_vocabulary=11)
    declared = subject.choices.tying
    case.probe.load(draw_untied_parameters(case, draw))
    held = {name: as_floats(one) for name, one in export_parameters(case.probe).items()}
    for one, other, options in _MATRICES:
        same = np.array_equal(held[one], held[other])
        found = "are exported as one" if same else "are exported as different"
        holds(
            same == (declared in options),
            f"Tying is declared as {declared}, and the numbers loaded into {one} and {other} "
            f"{found}.",
        )
    case.probe.parameters = held
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)


_MATRICES = (
    ("source_embedding.weight", "target_embedding.weight", ("all-three", "embeddings")),
    ("target_embedding.weight", "generator.weight", ("all-three", "target-and-output")),
    ("source_embedding.weight", "generator.weight", ("all-three",)),
)
"""Pairs of vocabulary matrices, and the options of tying under which they are one."""


@check("model.tied-gradient", examples=2)
def test_tied_gradient(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    twins = tied("model", case.sizes, subject.choices)
    pairs = {name: root for name, root in twins.items() if name in _VOCABULARIES}
    if not pairs:
        raise Absent(f"{subject.name} declares no tied matrices")
    inputs = without_pads(draw, case)
    shape = (*case.target.shape, case.sizes.target_vocabulary)
    gradient = case.probe.vjp(inputs, draw.floats(*shape))
    for name, root in pairs.items():
        found = gradient_of(case.probe, gradient, name)
        what = f"gradient of {name}, tied to {root},"
        equal(found, gradient_of(case.probe, gradient, root), what=what)
        holds(bool(found.any()), f"No gradient reaches {name}.")
    agrees_with_differences(case.probe, *inputs, draw=draw)


_VOCABULARIES = frozenset(name for pair in _MATRICES for name in pair[:2])


@check("model.unlike-vocabularies-refused", examples=2)
def test_unlike_vocabularies_refused(subject: Subject, draw: Draw) -> None:
    refuses(subject, *_building_unlike(subject, draw)[:2])


@check("model.unlike-vocabularies-named", examples=2)
def test_unlike_vocabularies_named(subject: Subject, draw: Draw) -> None:
    doing, build, pair = _building_unlike(subject, draw)
    explains_refusal(subject, doing, build, naming=pair)


def _building_unlike(
    subject: Subject, draw: Draw
) -> tuple[str, Callable[[], Probe], tuple[int, int]]:
    """Return in words and as an action how a model ties two vocabularies of different sizes."""
    if not one_vocabulary(subject.choices):
        raise Absent(f"{subject.name} does not tie the two vocabularies")
    if not subject.limits.own_vocabularies:
        raise Absent(f"source and target of {subject.name} have one vocabulary")
    subject.part("model", model_sizes(subject, draw))
    pair = draw.choose(((11, 13), (13, 11)))
    sizes = model_sizes(subject, draw, source_vocabulary=pair[0], target_vocabulary=pair[1])
    doing = f"building a model that ties vocabularies of {pair[0]} and {pair[1]} tokens"
    return doing, lambda: subject.part("model", sizes), pair


@check("model.parameter-count", examples=2)
def test_parameter_count(subject: Subject, draw: Draw) -> None:
    for layers in (draw.layers(1, 2), min(3, subject.limits.layers or 3)):
        _counted(subject, model_sizes(subject, draw, layers=layers))


def _counted(subject: Subject, sizes: Sizes) -> None:
    found = inventory(subject.part("model", sizes))["parameters"]
    held = sum(prod(facts["shape"]) for facts in found.values() if facts.get("trained", True))
    implied = count("model", sizes, subject.choices)
    holds(
        held == implied,
        f"The model trains {held} numbers; its sizes and choices imply {implied}.",
    )


@check("model.parameter-map-complete", examples=2)
def test_parameter_map_complete(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, layers=draw.layers(1, 2))
    found, loaded = export_parameters(case.probe), case.probe.parameters
    missing, extra = sorted(set(loaded) - set(found)), sorted(set(found) - set(loaded))
    holds(not missing, f"Parameters that are not exported: {first_names(missing)}.")
    holds(not extra, f"Parameters exported that were never loaded: {first_names(extra)}.")
    parameters_round_trip(case.probe, found, loaded)
    case.probe.load({name: as_floats(values) for name, values in found.items()})
    for name, values in export_parameters(case.probe).items():
        equal(values, found[name], what=f"parameter {name}, loaded and exported again,")


@check("model.finite-at-birth", examples=2)
def test_finite_at_birth(subject: Subject, draw: Draw) -> None:
    sizes = model_sizes(subject, draw, layers=draw.layers(1, 2))
    for name, values in export_parameters(subject.part("model", sizes)).items():
        finite(values, what=f"parameter {name} of a fresh model")
        size, scaled = largest(values), name.endswith("embedding.weight")
        most = 10 * sizes.d_model**0.5 if scaled else 10  # the factor of embeddings may be in them
        holds(size < most, f"The parameter {name} of a fresh model holds {size:.3g}.")


@check("model.layers-differ-at-birth", examples=2)
def test_layers_differ_at_birth(subject: Subject, draw: Draw) -> None:
    sizes = model_sizes(subject, draw, layers=draw.layers(2, 3))
    held = export_parameters(subject.part("model", sizes))
    matrices = [
        name
        for name, values in held.items()
        if ".layers." in name and values.ndim > 1 and np.ptp(as_floats(values)) > 0
    ]  # branches may begin at 0 in all layers, and `varied` looks at other constants
    seen: dict[tuple[str, bytes], str] = {}
    for name in matrices:
        stack, _, rest = name.partition(".layers.")
        place = f"{stack} {rest.partition('.')[2]}"
        twin = seen.setdefault((place, as_floats(held[name]).tobytes()), name)
        holds(twin == name, f"{name} and {twin} hold the same numbers at birth.")
