"""Layers that hold a norm and do not call it: the rest of their numbers confirms how they are read.

A parameter that nothing depends on is a mistake, whatever the layer computes.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from torch import nn

from attentest.analysis.diagnosis.variants import Variant
from attentest.analysis.identify import Finding
from attentest.faults import Fault, faults
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.parameters.trials.mistaken import CLOSE, distance
from attentest.targets.adapt.probing import undisturbed
from attentest_spec import CHOICES, Choices, Table
from attentest_spec.choices import Value
from attentest_spec.mapping import locate

_NAMES = {
    "encoder_layer": ("self_attention", "feed_forward"),
    "decoder_layer": ("self_attention", "cross_attention", "feed_forward"),
}
_LAYERS = {"encoder": "encoder_layer", "decoder": "decoder_layer"}
_STACKS = {*_NAMES, *_LAYERS}
_WITHOUT_PATH = {
    "encoder_layer": {
        "self_attention": "encoder.no-skip-around-attention",
        "feed_forward": "encoder.no-skip-around-feed-forward",
    },
    "decoder_layer": {"feed_forward": "decoder.no-skip-around-feed-forward"},
}
"""The mistakes of sublayers that have a norm, and no path around them."""


def around_norm(component: str, found: FoundTable, findings: Mapping[str, Finding]) -> FoundTable:
    """Return `found` with the choices under which a norm that is not called explains the numbers.

    It is `found` as it is where nothing explains them.
    """
    seen = found.observed
    if seen is None or not (seen.run.samples and found.table) or component not in _STACKS:
        return found
    measured = {name: one.measured for name, one in findings.items() if one.measured is not None}
    with undisturbed():
        for choices in _candidates({**found.choices, **measured}):
            for variant in without_norm(component, choices):
                if _holds_idle(variant, component, found.table, seen.run.order) and gives(
                    variant, component, found.table, seen
                ):
                    fitted = with_closest_epsilon(variant, component, found.table, seen)
                    more = {name: fitted[name] for name in _measured_of(fitted)}
                    said = _said(variant, component, found.table)
                    return replace(found, choices={**found.choices, **more}, idle=(said,))
    return found


def with_closest_epsilon(variant: Variant, component: str, table: Table, seen: Observed) -> Choices:
    """Return the choices of a mistake with the epsilon that comes closest: several may fit."""
    own, axis = variant.declared, epsilon_of(variant.declared)
    every = [own.but(**{axis: one}) for one in dict.fromkeys([own[axis], *EPSILONS])]
    ranked = [
        (_distance(replace(variant, declared=one), component, table, seen), number)
        for number, one in enumerate(every)
    ]
    return every[min(ranked)[1]]


def epsilon_of(known: Mapping[str, Value] | Choices) -> str:
    """Return the choice that is the epsilon of the kind of norms that is `known`."""
    kind = known.norm_kind if isinstance(known, Choices) else known.get("norm_kind", "layer")
    return "rms_epsilon" if kind == "rms" else "norm_epsilon"


_SENTENCE = (
    "{} is held and not called: a norm is missing there, and but for it the numbers are those of "
    "the reference"
)
_REPLACED = (
    "{} is held and not called: {} is called in its place, and but for it the numbers are those of "
    "the reference"
)


def _said(variant: Variant, component: str, table: Table) -> str:
    """Return the sentence on the norm that is not called."""
    idle, _, other = variant.faults[0].slug.removeprefix(_PREFIX).partition(".")
    names = [_path(one, component, table) for one in (idle, other) if one]
    return _REPLACED.format(*names) if other else _SENTENCE.format(*names)


def _path(sublayer: str, component: str, table: Table) -> str:
    """Return the name of the norm of `sublayer` in the first layer."""
    within = "layers.0." if component in _LAYERS else ""
    return locate(f"{within}{sublayer}_norm.gain", table).name.rpartition(".")[0]


def _holds_idle(variant: Variant, component: str, table: Table, called: Collection[str]) -> bool:
    """Say whether the norm that is not called has parameters of its own, none of another norm.

    A module that is among the `called` ones is none.
    """
    idle = variant.faults[0].slug.removeprefix(_PREFIX).partition(".")[0]
    names = _NAMES[_LAYERS.get(component, component)]
    try:
        own, *rest = (
            _path(one, component, table) for one in (idle, *(o for o in names if o != idle))
        )
    except (KeyError, ValueError):
        return True
    return own not in rest and own not in called


_PREFIX = "norm-not-called."

EPSILONS: tuple[Value, ...] = (1e-5, 1e-6, 1e-12)
"""The epsilons of most norms."""


def _measured_of(known: Mapping[str, Value] | Choices) -> tuple[str, ...]:
    """Return the choices that no option shows where a norm is left out."""
    return "norm_placement", "activation", epsilon_of(known)


def _candidates(known: Mapping[str, Value]) -> Iterator[Choices]:
    """Yield `known` with all options of what is not measured."""
    names = _measured_of(known)
    axes = [[known[one]] if one in known else _values(one) for one in names]
    for values in product(*axes):
        yield Choices.of({**known, **dict(zip(names, values, strict=True))})


def _values(name: str) -> list[Value]:
    return list(EPSILONS) if "epsilon" in name else [o.name for o in CHOICES[name].options]


def gives(
    variant: Variant, component: str, table: Table, seen: Observed, *, first: int = 0
) -> bool:
    """Say whether a mistake gives the numbers of the code in the first sample.

    The rows before number `first` may be any.
    """
    return _distance(variant, component, table, seen, first) <= CLOSE


def _distance(
    variant: Variant, component: str, table: Table, seen: Observed, first: int = 0
) -> float:
    """Return the largest difference to the first sample, as a part of its largest number."""
    return distance(variant, component, table, seen.run.samples[0], seen.run, seen.sizes, first)


def without_norm(component: str, declared: Choices) -> Iterator[Variant]:
    """Yield layers, or stacks of them, in which one sublayer has no norm, or that of another."""
    layer = _LAYERS.get(component, component)
    for name in _NAMES.get(layer, ()):
        for other in ("", *_NAMES[layer]):
            if other != name:
                yield Variant({}, (_fault(layer, name, other),), declared)


def nothing_around(component: str, declared: Choices) -> Iterator[Variant]:
    """Yield layers, or stacks of them, with neither a path around one sublayer nor a norm."""
    layer = _LAYERS.get(component, component)
    for name, slug in _WITHOUT_PATH.get(layer, {}).items():
        yield Variant({}, (faults()[slug], _fault(layer, name, "")), declared)


@cache
def _fault(layer: str, name: str, other: str) -> Fault:
    """Return the mistake that the norm of `name` is not called; that of `other` is, if any."""

    def norm_of(self: Any, module: Any, own: str) -> Any:
        if module.step != layer or own != name:
            return self.correct.norm_of(module, own)
        return self.correct.norm_of(module, other) if other else nn.Identity()

    called = f"that of {other} is called in its place" if other else "held and not called"
    return Fault(
        slug=f"{_PREFIX}{name}.{other}",
        clause="encoder.layer-formula",
        wrong=f"The norm of the sublayer {name} is not called: {called}.",
        effect="It is saved, counted and never trained.",
        origin="own",
        seam="norm_of",
        override=norm_of,
        components=(layer,),
    )
