"""The choices that a table leaves open, and the order in which their options are tried."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from operator import ne

import numpy as np

from attentest.targets.adapt.parameters.behaviour import Compute, Stage
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest_spec import Choices, Setting, Sizes
from attentest_spec.choices import CHOICES, Value
from attentest_spec.parameters import learned_positions
from attentest_spec.setting import Floats

EXACT, TURNED_IN_SINGLE, LOOSE = 1e-8, 1e-5, 1e-4
"""Largest relative differences: of one formula, with tables of sines in float32, and of one whose
epsilon is not known."""

NEAREST = 1
"""Choices that may be another than the usual one where no combination gives a part's numbers."""

OPEN: Mapping[str, tuple[str, ...]] = {
    "feed_forward": ("activation",),
    "mixture_of_experts": (
        "router_scores",
        "routing_weights",
        "router_bias",
        "routing_scale",
        "activation",
    ),
    "embedding": ("embedding_scale",),
    "generator": ("output", "logit_scale"),
    "positional_encoding": ("positional_encoding",),
    "layer_norm": ("norm_variance",),
    "rms_norm": ("rms_weight",),
    "residual": ("norm_placement", "norm_variance"),
    "encoder_layer": ("norm_placement", "norm_variance", "activation"),
    "decoder_layer": ("norm_placement", "norm_variance", "activation"),
    "encoder": ("norm_placement", "norm_variance", "activation"),
    "decoder": ("norm_placement", "norm_variance", "activation"),
    "model": (
        "norm_placement",
        "output",
        "embedding_scale",
        "norm_variance",
        "activation",
        "positional_encoding",
    ),
}
"""The choices that a table leaves open, the likeliest to differ first."""


def axes_of(component: str, decided: Choices) -> tuple[str, ...]:
    """Return the choices that a table leaves open, where the kind of the norms is decided."""
    return _of_kind(OPEN.get(component, ()), decided)


def axes_of_stage(stage: Stage, decided: Choices) -> tuple[str, ...]:
    """Return the choices that a part of a whole leaves open."""
    return _of_kind(stage.axes, decided)


def _of_kind(axes: Sequence[str], decided: Choices) -> tuple[str, ...]:
    of_rms = {"norm_variance": "rms_weight"} if decided.norm_kind == "rms" else {}
    return tuple(of_rms.get(axis, axis) for axis in axes)


WITH_EPSILON = {"norm_variance", "rms_weight", "router_scores"}
"""Choices of formulas that have an epsilon, which is not known yet, or that round to float32."""


def options(axes: Sequence[str], decided: Choices, most: int | None = None) -> Iterator[Choices]:
    """Yield the choices with all options of `axes`, the fewest changes first; at `most` so many."""
    each = [_values(axis, decided) for axis in axes]
    usual = [several[0] for several in each]
    for values in sorted(product(*each), key=lambda one: sum(map(ne, one, usual))):
        if most is not None and sum(map(ne, values, usual)) > most:
            return
        changes = dict(zip(axes, values, strict=True))
        choices = decided.but(**changes)
        if learned_positions(choices) == learned_positions(decided):
            yield choices


def _values(axis: str, decided: Choices) -> list[Value]:
    """Return the options of a choice; the bias of a router is there or not, by the parameters."""
    if axis == "routing_scale":
        return ["none", *_SCALES]
    names: list[Value] = [one.name for one in CHOICES[axis].options]
    if axis != "router_bias":
        return names
    return names[:1] if decided.router_bias == "none" else names[1:]


_SCALES = (2.5, 16.0, 1.8)
"""Factors of published mixtures of experts."""


def left_open(
    axes: Sequence[str],
    stages: Sequence[Stage],
    parameters: Mapping[str, Floats],
    sizes: Sizes,
    decided: Choices,
    clock: Clock,
) -> Iterator[Choices]:
    """Yield the combinations of the open choices `axes` that a whole is tried with.

    Each is tried on the `stages`, which are small, and the whole with those that give their
    numbers. A part may be another thing than it seems: where nothing gives its numbers, the whole
    is tried all the same, with the choices that are nearest to the usual ones.
    """
    fits, closed = [decided], set[str]()
    for stage in stages:
        own = [axis for axis in stage.axes if axis not in closed]
        tried = (choices for base in fits for choices in options(own, base))
        fits = [
            choices
            for choices in tried
            if not clock.rings() and gives(stage, Setting(sizes, choices, parameters))
        ]
        closed |= {*own}
        if not fits:
            yield from options(axes, decided, NEAREST)
            return
    rest = [axis for axis in axes if axis not in closed]
    for base in fits:
        yield from options(rest, base)


def gives(stage: Stage, given: Setting) -> bool:
    """Say whether one of the formulas of a part gives the output that was watched."""
    return any(error(compute, stage, given) <= LOOSE for compute in stage.formulas)


def error(compute: Compute, stage: Stage, given: Setting) -> float:
    """Return the largest difference from the output of a part, relative to its largest number."""
    try:
        expected = compute(given)
    except (KeyError, ValueError, IndexError):  # a parameter is not there, or does not fit
        return np.inf
    if expected.shape != stage.output.shape:
        return np.inf
    return float(np.abs(expected - stage.output).max() / (np.abs(stage.output).max() or 1.0))
