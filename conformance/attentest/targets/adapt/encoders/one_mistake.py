"""Layers whose name only hints at one, and that have its numbers but for one mistake.

A mistake that no design makes, and that gives exactly the numbers, says more than a name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from attentest.analysis.diagnosis.variants import Variant
from attentest.analysis.identify import Finding
from attentest.analysis.identify.attending import BASES
from attentest.faults import faults
from attentest.targets.adapt.encoders.idle_norms import (
    EPSILONS,
    epsilon_of,
    gives,
    with_closest_epsilon,
)
from attentest.targets.adapt.parameters.found import FoundTable
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.shown import TURNED
from attentest.targets.adapt.probing import undisturbed
from attentest_spec import CHOICES, Choices
from attentest_spec.choices import Value

SECONDS = 4.0
"""Time limit for trying mistakes."""

_OF_ATTENTION = (
    "attention.softmax-over-queries",
    "attention.scale-by-model-width",
    "attention.scale-multiplied",
    "multi_head_attention.merged-without-transpose",
    "multi_head_attention.split-without-transpose",
)
_NO_DESIGN: Mapping[str, tuple[str, ...]] = {
    "encoder_layer": (
        "feed_forward.no-activation",
        "encoder.second-skip-from-the-input",
        "encoder.no-skip-around-feed-forward",
        "encoder.no-skip-around-attention",
        "encoder.first-norm-twice",
        "encoder.norms-exchanged",
        *_OF_ATTENTION,
    ),
    "decoder_layer": (
        "feed_forward.no-activation",
        "decoder.no-skip-around-the-memory",
        *_OF_ATTENTION,
    ),
}
"""Mistakes of each layer that no design makes.

Not among them: scores without a scale, a path around a sublayer that begins behind the norm, and
sublayers side by side, which published models have.
"""

_TURNED: tuple[Mapping[str, Value], ...] = (
    {},
    *(one for one in TURNED if one["rotary_base"] == BASES[0]),
)
"""The positions inside attention that are tried in layers of later models, if none are measured."""


def around_mistake(
    component: str, found: FoundTable, findings: Mapping[str, Finding]
) -> FoundTable | None:
    """Return `found` with the choices under which one mistake gives its numbers, None for none."""
    seen = found.observed
    if seen is None or not (seen.run.samples and found.table) or found.unplaced:
        return None
    measured = {name: one.measured for name, one in findings.items() if one.measured is not None}
    clock = Clock(SECONDS)
    with undisturbed():
        known = {**found.choices, **measured}
        later = "rms" in known.values() or "gated" in known.values()
        turned = _TURNED if later else _TURNED[:1]
        bases = [{**known, **one} for one in turned if not one.keys() & measured.keys()]
        for variant in (one for base in bases for one in _variants(component, base)):
            if clock.rings():
                return None
            if gives(variant, component, found.table, seen):
                fitted = with_closest_epsilon(variant, component, found.table, seen)
                more = {name: fitted[name] for name in _free({"norm_kind": fitted.norm_kind})}
                if fitted.attention_rotary != "none":
                    more |= {name: fitted[name] for name in _TURNED[-1]}
                return replace(found, choices={**found.choices, **more})
    return None


def _variants(component: str, known: Mapping[str, Value]) -> Iterator[Variant]:
    catalogue = faults()
    for name in _NO_DESIGN.get(component, ()):
        free = _free(known)
        if name == "feed_forward.no-activation":
            free["activation"] = free["activation"][:1]
        for values in product(*free.values()):
            declared = Choices.of({**known, **dict(zip(free, values, strict=True))})
            fault = catalogue[name]
            if all(declared[one] == value for one, value in fault.choices.items()):
                yield Variant({}, (fault,), declared)


def _free(known: Mapping[str, Value]) -> dict[str, list[Value]]:
    """Return the options of what a mistake may leave unmeasured: those that are `known` alone."""
    every: dict[str, list[Value]] = {
        "norm_placement": [one.name for one in CHOICES["norm_placement"].options],
        "activation": [one.name for one in CHOICES["activation"].options],
        epsilon_of(known): list(EPSILONS),
    }
    return {name: [known[name]] if name in known else one for name, one in every.items()}
