"""The choices that the parts of a whole show by themselves, where its output shows none.

A mistake elsewhere changes nothing of what a part computes from what it is given.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from attentest.analysis.identify.attending import BASES
from attentest.analysis.identify.norms import EPSILONS, epsilon_of
from attentest.targets.adapt.parameters.behaviour import Run, Stage
from attentest.targets.adapt.parameters.layers import Part
from attentest.targets.adapt.parameters.stacks import Layers
from attentest.targets.adapt.parameters.trials.open_choices import (
    WITH_EPSILON,
    axes_of_stage,
    error,
    gives,
    options,
)
from attentest.targets.adapt.parameters.trials.stages import norm_placement, sublayers
from attentest_spec import Choices, Setting, Sizes
from attentest_spec.choices import Value
from attentest_spec.setting import Floats

ROUNDED = 1e-12, 1e-6
"""Relative differences between which a sum of embeddings and positions differs by rounding."""

ALIKE = 1e-3
"""Largest difference between sentences, relative to the largest one from the formula."""

PLAIN: Mapping[str, Value] = {}

TURNED: tuple[Mapping[str, Value], ...] = tuple(
    {"attention_rotary": "query-and-key", "rotary_pairs": pairs, "rotary_base": base}
    for pairs, base in product(("halves", "adjacent"), BASES)
)
"""The positions inside attention that turn queries and keys, as they are tried."""

BIASED: tuple[Mapping[str, Value], ...] = (
    {"relative_bias": "alibi"},
    {"relative_bias": "alibi-geometric"},
)
"""The positions inside attention that are added to its scores, as they are tried."""


def rounded_positions(
    stages: Sequence[Stage], parameters: Mapping[str, Floats], sizes: Sizes, decided: Choices
) -> dict[str, Value]:
    """Return that positions are computed in single precision, where the embeddings show it alone.

    In a whole model with a mistake elsewhere, no output shows it. What rounds the positions is the
    same for all sentences, and what rounds the scale of their words is not.
    """
    for stage in stages:
        if "positional_encoding" in stage.axes:
            for choices in options(stage.axes, decided):
                given = Setting(sizes, choices, parameters)
                if min(ROUNDED) < error(stage.formulas[0], stage, given) < max(ROUNDED):
                    off = stage.formulas[0](given) - stage.output
                    alike = np.ptp(off, axis=0).max() <= ALIKE * np.abs(off).max()
                    return {"position_arithmetic": "float32"} if alike else {}
    return {}


def shown_by_parts(
    component: str,
    parts: Sequence[Part],
    lists: Mapping[str, Layers],
    run: Run,
    parameters: Mapping[str, Floats],
    sizes: Sizes,
    decided: Choices,
) -> dict[str, Value]:
    """Return the choices that the parts of a whole show, whose output fits no option."""
    shown: dict[str, Value] = {
        **rounded_positions(run.stages, parameters, sizes, decided),
        **norm_placement(parts, lists, run, sizes),
    }
    for stage in (*run.stages, *sublayers(component, parts, run)):
        found = _shown(stage, parameters, sizes, decided.but(**shown))
        shown |= found or _exchanged(stage, parameters, sizes, decided.but(**shown))
    return shown


def _shown(
    stage: Stage, parameters: Mapping[str, Floats], sizes: Sizes, decided: Choices
) -> dict[str, Value]:
    """Return the options that give the numbers of a part, as far as all that do agree."""
    axes = axes_of_stage(stage, decided)
    for turned in (PLAIN, *TURNED):
        tried = options(axes, decided.but(**turned))
        fits = [one for one in tried if gives(stage, Setting(sizes, one, parameters))]
        if fits:
            epsilon = _epsilon(stage, axes, fits[0], parameters, sizes)
            return {**turned, **dict(_agreed(axes, fits)), **epsilon}
    return {}


def _exchanged(
    stage: Stage, parameters: Mapping[str, Floats], sizes: Sizes, decided: Choices
) -> dict[str, Value]:
    """Return the activation of a network whose gate is exchanged with what it multiplies."""
    if "activation" not in stage.axes:
        return {}
    other = {"inner": "gate", "gate": "inner"}
    swapped = {
        ".".join(other.get(word, word) for word in name.split(".")): one
        for name, one in parameters.items()
    }
    found = _shown(stage, swapped, sizes, decided) if swapped.keys() == parameters.keys() else {}
    return {name: one for name, one in found.items() if name == "activation"}


def _agreed(axes: Sequence[str], fits: Sequence[Choices]) -> Iterator[tuple[str, Value]]:
    for axis in axes:
        values = {one[axis] for one in fits}
        if len(values) == 1:
            yield axis, values.pop()


def _epsilon(
    stage: Stage,
    axes: Sequence[str],
    fitting: Choices,
    parameters: Mapping[str, Floats],
    sizes: Sizes,
) -> dict[str, Value]:
    """Return the epsilon of the norms of a part, of those in use, where one comes closest."""
    if not WITH_EPSILON & {*axes} or "router_scores" in axes:
        return {}
    axis = epsilon_of(fitting)

    def apart(epsilon: float) -> float:
        given = Setting(sizes, fitting.but(**{axis: epsilon}), parameters)
        return min(error(compute, stage, given) for compute in stage.formulas)

    (least, best), (second, _), *_ = sorted((apart(one), one) for one in EPSILONS)
    return {axis: best} if least < second / 10 else {}
