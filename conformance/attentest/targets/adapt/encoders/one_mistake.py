"""Code whose name only hints at a component, and that has its numbers but for one mistake.

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
from attentest.targets.adapt.parameters.storage import as_place
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.shown import TURNED
from attentest.targets.adapt.parameters.words import feed_forward_role
from attentest.targets.adapt.probing import undisturbed
from attentest_spec import CHOICES, Choices
from attentest_spec.choices import Value
from attentest_spec.mapping import Table

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
    "multi_head_attention": _OF_ATTENTION,
    "feed_forward": ("feed_forward.gate-exchanged",),
    "rms_norm": ("rms_norm.weight-dropped",),
}
"""Mistakes of each component that no design makes; names say which matrix is the gate.

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
    if component == "feed_forward" and not _names_both(found.table):
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
                more = {
                    name: fitted[name]
                    for name in _free({**known, "norm_kind": fitted.norm_kind}, component)
                }
                if fitted.attention_rotary != "none":
                    more |= {name: fitted[name] for name in _TURNED[-1]}
                return replace(found, choices={**found.choices, **more})
    return None


def _names_both(table: Table) -> bool:
    """Say whether the names of gate and inner projection say which is which."""
    said = {name.partition(".")[0]: as_place(entry).name for name, entry in table.items()}
    return all(feed_forward_role(said.get(role, "")) == role for role in ("gate", "inner"))


def _variants(component: str, known: Mapping[str, Value]) -> Iterator[Variant]:
    catalogue = faults()
    for name in _NO_DESIGN.get(component, ()):
        free = _free(known, component)
        if name == "feed_forward.no-activation":
            free["activation"] = free["activation"][:1]
        for values in product(*free.values()):
            declared = Choices.of({**known, **dict(zip(free, values, strict=True))})
            fault = catalogue[name]
            # Which activation is declared to be on the gate is nothing to this mistake.
            needed = {name: one for name, one in fault.choices.items() if name != "activation"}
            if all(declared[one] == value for one, value in needed.items()):
                yield Variant({}, (fault,), declared)


_OPEN = {
    "multi_head_attention": (),
    "feed_forward": ("activation",),
    "rms_norm": ("rms_epsilon",),
}
"""Choices that a mistake may leave unmeasured in components that are no layers."""


def _free(known: Mapping[str, Value], component: str) -> dict[str, list[Value]]:
    """Return the options of what a mistake may leave unmeasured: those that are `known` alone."""
    if component == "rms_norm":
        known = {**known, "norm_kind": "rms"}
    every: dict[str, list[Value]] = {
        "norm_placement": [one.name for one in CHOICES["norm_placement"].options],
        "activation": [one.name for one in CHOICES["activation"].options],
        epsilon_of(known): list(EPSILONS),
    }
    own = {name: one for name, one in every.items() if name in _OPEN.get(component, every)}
    return {name: [known[name]] if name in known else one for name, one in own.items()}
