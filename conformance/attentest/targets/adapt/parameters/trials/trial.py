"""Tries tables against the oracle: where names and shapes leave several, the numbers choose."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product

import numpy as np

from attentest.targets.adapt.parameters.behaviour import Run, Sample, Stage
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.open_choices import (
    EXACT,
    LOOSE,
    TURNED_IN_SINGLE,
    WITH_EPSILON,
    axes_of,
    left_open,
)
from attentest.targets.adapt.parameters.trials.shown import BIASED, PLAIN, TURNED
from attentest_spec import Choices, Setting, Sizes
from attentest_spec.mapping import Place, Table, locate
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import shapes
from attentest_spec.setting import Floats

AFTER_ONE = 64
"""Tables that are tried after the first that fits, to see whether others give the same numbers."""


def fitting(
    component: str,
    tables: list[Table],
    samples: list[Sample],
    run: Run,
    sizes: Sizes,
    decided: Choices,
    clock: Clock,
) -> list[Table]:
    """Return the tables under which the oracle gives the output of the first sample it can.

    Attention by itself may have positions inside, which no parameter shows.
    """
    inside = (PLAIN, *TURNED, *BIASED) if component == "multi_head_attention" else (PLAIN,)
    for positions, sample in product(inside, samples):
        known = decided.but(**positions)
        found: list[Table] = []
        last = len(tables)
        for number, table in enumerate(tables):
            if number > last or clock.rings():
                return found
            found_at = places(component, table, run.own, sizes, known)
            parameters = read(found_at, run.own, sizes)
            stages = run.stages if any(sample is one for one in run.samples) else ()
            if reproduces(component, parameters, sample, sizes, known, clock, stages):
                found.append(table)
                last = min(last, number + AFTER_ONE)
        if found:
            return found
    return []


def places(
    component: str, table: Table, own: Mapping[str, Floats], sizes: Sizes, choices: Choices
) -> dict[str, Place]:
    """Return where `table` finds the canonical parameters; a bias that is not there is left out."""
    found = {}
    biased = choices.but(projection_bias="present", rms_bias="present")
    for name in shapes(component, sizes, biased):
        with suppress(KeyError):
            place = locate(name, table)
            if own.keys() & set(place.names(own)):
                found[name] = place
    return found


def read(found: Mapping[str, Place], own: Mapping[str, Floats], sizes: Sizes) -> dict[str, Floats]:
    """Return the canonical parameters at their places among the module's own."""
    return {name: place.read(own, sizes.heads, sizes.kv_heads) for name, place in found.items()}


def reproduces(
    component: str,
    parameters: Mapping[str, Floats],
    sample: Sample,
    sizes: Sizes,
    decided: Choices,
    clock: Clock,
    stages: Sequence[Stage] = (),
) -> bool:
    """Say whether the oracle gives the sample's output under some of the open choices.

    `stages` are parts of the component that were watched in the same call: they leave few choices.
    """
    axes = axes_of(component, decided)
    bound = EXACT if decided.attention_rotary == "none" else TURNED_IN_SINGLE
    bound = LOOSE if WITH_EPSILON.intersection(axes) else bound
    for choices in left_open(axes, stages, parameters, sizes, decided, clock):
        if "output" in axes and not _can_be(choices.output, sample.output):
            continue
        if clock.rings():
            return False
        try:
            expected = ORACLES[component](Setting(sizes, choices, parameters), *sample.inputs)
        except (KeyError, ValueError, IndexError):  # a parameter is not there, or does not fit
            return False
        if expected.shape != sample.output.shape:
            return False
        if np.abs(expected - sample.output).max() <= bound * np.abs(expected).max():
            return True
    return False


def _can_be(output: str, actual: Floats) -> bool:
    """Say whether `actual` (.., V) can be an output of that kind, whose distributions sum to 1."""
    with np.errstate(over="ignore"):
        off = {
            "probabilities": np.abs(actual.sum(axis=-1) - 1.0).max(),
            "log-probabilities": np.abs(np.exp(actual).sum(axis=-1) - 1.0).max(),
        }
    if output == "logits":  # those of random parameters are no distributions
        return bool(min(off.values()) > EXACT)
    return bool(off[output] < _OFF)


_OFF = 0.5
"""The deviation of a sum of probabilities from 1 that no tolerance makes."""
