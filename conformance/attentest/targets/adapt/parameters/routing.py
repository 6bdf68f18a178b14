"""The reading of a mixture of experts: what it has to take, and the choices behind a mistake."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import product

import numpy as np

from attentest.analysis.diagnosis.variants import singles
from attentest.analysis.identify import NONE_FITS, Finding
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.parameters.found import FoundTable
from attentest.targets.adapt.parameters.trial import Clock, places, read
from attentest.targets.adapt.reading import Uncovered
from attentest.targets.signatures import constructor_arguments
from attentest_spec import Choices
from attentest_spec.choices import Value

COMPONENT = "mixture_of_experts"

CLOSE = 1e-6
"""Largest relative difference between an output and that of a catalogued mistake."""

SECONDS = 6.0
"""Time limit for trying mistakes of the catalogue under the usual choices."""

_USUAL: Mapping[str, tuple[str, ...]] = {
    "router_scores": ("softmax", "sigmoid"),
    "routing_weights": ("renormalised", "as-scored"),
    "activation": ("silu", "gelu", "relu", "gelu-tanh"),
}
"""The options that are tried together with a mistake."""

_NO_OPTION = (
    "its numbers are those of no option, and of no mistake of the catalogue: a limit for the "
    "positions of an expert, groups of experts, noise and weights on the input of an expert are "
    "not specified"
)


def demand_sizes(code: Code) -> None:
    """Raise Uncovered for a mixture whose numbers of experts are fixed, or that limits an expert.

    A limit for the positions that an expert takes shows only where many choose it.
    """
    if code.component != COMPONENT:
        return
    limits = [own for own in constructor_arguments(code.thing) if "capacity" in squashed(own)]
    if limits:
        raise Uncovered(
            f"{code.name} is not judged as {COMPONENT}: {limits[0]} limits how many positions an "
            f"expert takes, which is not specified."
        )
    for size, what in (("experts", "experts"), ("chosen_experts", "experts that are chosen")):
        if size not in code.known:
            raise Uncovered(
                f"{code.name} is not judged as {COMPONENT}: no argument of its constructor is the "
                f"number of {what}. --argument {size}=NAME (in Python: arguments="
                f"{{{size!r}: NAME}}) says which one is; a fixed number is not judged."
            )


def settled(
    code: Code, adapter: Adapter, found: FoundTable, findings: Mapping[str, Finding]
) -> FoundTable:
    """Return `found` with the choices under which a mistake of the catalogue gives the numbers.

    Where no option explains the numbers of a mixture of experts, and no mistake, it has a doubt.
    """
    unexplained = any(one.status == NONE_FITS for one in findings.values())
    if code.component != COMPONENT or not unexplained or not found.table:
        return found
    doubtful = replace(found, doubts=[*found.doubts, _NO_OPTION])
    choices = next(_of_mistakes(found), None)
    return doubtful if choices is None else replace(doubtful, choices=choices)


def _of_mistakes(found: FoundTable) -> Iterator[dict[str, Value]]:
    """Yield the choices under which a mistake of the catalogue gives the numbers."""
    seen = found.observed
    if seen is None or not seen.run.samples:
        return
    sample, clock = seen.run.samples[0], Clock(SECONDS)
    for values in product(*_USUAL.values()):
        choices = {**found.choices, **dict(zip(_USUAL, values, strict=True))}
        declared = Choices.of(choices)
        at = places(COMPONENT, found.table, seen.run.own, seen.sizes, declared)
        parameters = read(at, seen.run.own, seen.sizes)
        for variant in singles(declared, COMPONENT, ""):
            if clock.rings():
                return
            if not variant.faults or variant.faults[0].kind != "value":
                continue
            try:
                part = variant.backend().build(COMPONENT, seen.sizes)
                part.load(parameters)
                output = np.asarray(part(*deepcopy(sample.inputs)))  # some write into it
            except Exception:  # a mistake may show itself by raising
                continue
            if output.shape == sample.output.shape and _close(output, sample.output):
                yield choices
                return


def _close(output: np.ndarray, actual: np.ndarray) -> bool:
    return bool(np.abs(output - actual).max() <= CLOSE * np.abs(actual).max())
