"""Parts of later models that have the numbers of the reference but for one mistake.

No option gives the numbers of such code. A mistake that no design makes, and that gives exactly
them, says more than a name, and than that attention depends on positions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from attentest.analysis.diagnosis.variants import Variant
from attentest.analysis.identify import Finding
from attentest.analysis.identify.attending import BASES, bucket_options
from attentest.faults import Fault, faults
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.encoders.idle_norms import gives
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.mistaken import OF_ATTENTION
from attentest.targets.adapt.parameters.trials.shown import BIASED, TURNED
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Unclear
from attentest_spec import CHOICES, COMPONENTS, Choices
from attentest_spec.choices import Value

SECONDS = 4.0
"""Time limit for trying mistakes."""

_NO_DESIGN: Mapping[str, tuple[str, ...]] = {
    "multi_head_attention": OF_ATTENTION,
    "feed_forward": (
        "feed_forward.gate-exchanged",
        "feed_forward.activation-of-the-product",
        "feed_forward.activation-on-both",
        "feed_forward.gate-times-itself",
        "feed_forward.gate-added",
        "feed_forward.gate-with-the-bias-of-the-value",
        "feed_forward.gate-of-the-neighbour",
    ),
    "rms_norm": (
        "rms_norm.root-missing",
        "rms_norm.reciprocal-divides",
        "rms_norm.over-time",
        "rms_norm.over-time-and-features",
        "rms_norm.width-less-one",
        "rms_norm.mean-absolute",
        "rms_norm.sign-lost",
    ),
}
"""Mistakes of each part that no design makes.

Not among them: values that are turned, other slopes, cosines in the place of scores, caps, windows,
gates without an activation, and rows that are divided by their length, which published models have.
"""

_BY_NAME = ("attention.scale-missing",)
"""Mistakes that a few published models make, in a class whose whole name says what it is."""

_WITHOUT_FIRST = ("multi_head_attention.own-key-hidden",)
"""Mistakes that leave the first query without a key: its row is no number, or that of any key."""

_WHATEVER: Mapping[str, tuple[str, ...]] = {
    "feed_forward": ("activation",),
    "multi_head_attention.keys-not-turned": ("rotary_pairs",),
    "multi_head_attention.heads-as-positions": ("rotary_pairs",),
    "multi_head_attention.slopes-positive": ("relative_bias",),
}
"""Choices of mistakes, or of those of a part, under whose other options they are the same."""


def around_mistake_of_part(
    adapter: Adapter, found: FoundTable, findings: Mapping[str, Finding], *, guessed: bool
) -> FoundTable:
    """Return `found` with the choices under which one mistake gives its numbers, as it is for none.

    A `guessed` component is one by a part of its name: attention that is neither causal nor has
    positions inside says no more than that.
    """
    names = (*_NO_DESIGN.get(adapter.component, ()), *(_BY_NAME if not guessed else ()))
    return _explained_by(names, adapter, found, findings, plain=not guessed) or found


def demand_usual(
    name: str,
    adapter: Adapter,
    found: FoundTable,
    findings: Mapping[str, Finding],
    line: Callable[[], str],
) -> None:
    """Raise Unclear where a mistake that a few models make explains code that a name hints at."""
    if (explained := _explained_by(_BY_NAME, adapter, found, findings)) is None:
        return
    wrong, component = faults()[explained.mistake].wrong.rstrip("."), adapter.component
    raise Unclear(
        f"{name} was taken for {component} by a part of its name, and has the numbers of that but "
        f"for one thing, which a few published models mean: {wrong[0].lower()}{wrong[1:]}; if it "
        f"is not meant, or to have it judged, add --as {component}. {line()}"
    )


def around_declared(
    adapter: Adapter,
    found: FoundTable,
    findings: Mapping[str, Finding],
    declared: Mapping[str, Value],
) -> FoundTable | None:
    """Return `found` with the choices under which those that a user declares give the numbers."""
    component, seen = adapter.component, found.observed
    if not declared or seen is None or not (seen.run.samples and found.table) or found.unplaced:
        return None
    if "mask" not in adapter.arguments.roles:
        seen = _without_mask(component, seen)
    measured = {name: one.measured for name, one in findings.items() if one.measured is not None}
    with undisturbed():
        for added in ({}, *_unmeasured(component, {**found.choices, **measured})):
            choices = {**found.choices, **added}
            plain = Variant({}, (), Choices.of({**choices, **measured, **declared}))
            if gives(plain, component, found.table, seen):
                return replace(found, choices=choices)
    return None


def _explained_by(
    names: Sequence[str],
    adapter: Adapter,
    found: FoundTable,
    findings: Mapping[str, Finding],
    *,
    plain: bool = True,
) -> FoundTable | None:
    """Return `found` with the choices under which a mistake of `names` gives the numbers.

    `plain` says that attention may be neither causal nor have positions inside.
    """
    component, seen = adapter.component, found.observed
    if seen is None or not (seen.run.samples and found.table) or found.unplaced:
        return None
    if "mask" not in adapter.arguments.roles:
        seen = _without_mask(component, seen)
    measured = {name: one.measured for name, one in findings.items() if one.measured is not None}
    if _hides_nothing(component, found, measured):
        return None
    clock = Clock(SECONDS)
    with undisturbed():
        for added, variant in _variants(component, {**found.choices, **measured}, names):
            if clock.rings():
                return None
            orders = added.get("attention_causality") != "by-mask" or len(added) > 1
            first = int(variant.names[0] in _WITHOUT_FIRST)
            if (plain or orders) and gives(variant, component, found.table, seen, first=first):
                choices = {**found.choices, **added}
                return replace(found, choices=choices, mistake=variant.names[0])
    return None


def _hides_nothing(component: str, found: FoundTable, known: Mapping[str, Value]) -> bool:
    """Say whether attention is that of the reference without a mask, and should be causal.

    Positions that turn nothing give these numbers too, and are no part of it.
    """
    seen = found.observed
    if component != "multi_head_attention" or seen is None:
        return False
    plain = Choices.of({**found.choices, **known, "attention_causality": "by-mask"})
    with undisturbed():
        return gives(Variant({}, (), plain), component, found.table, _without_mask(component, seen))


def _without_mask(component: str, seen: Observed) -> Observed:
    """Return what was seen, without the mask of the contract that code did not get."""
    masks = [at for at, name in enumerate(COMPONENTS[component].inputs) if name == "mask"]
    samples = [
        replace(one, inputs=tuple(None if n in masks else x for n, x in enumerate(one.inputs)))
        for one in seen.run.samples
    ]
    return replace(seen, run=replace(seen.run, samples=samples))


def _variants(
    component: str, known: Mapping[str, Value], names: Sequence[str]
) -> Iterator[tuple[Mapping[str, Value], Variant]]:
    """Yield the choices that numbers may not show, with each mistake that can be made of them."""
    catalogue = faults()
    for added in _unmeasured(component, known):
        declared = Choices.of({**known, **added})
        for name in names:
            fault = catalogue[name]
            free = (*_WHATEVER.get(component, ()), *_WHATEVER.get(name, ()))
            needed = {one: fault.choices[one] for one in fault.choices if one not in free}
            fits = all(declared[one] == value for one, value in needed.items())
            fits &= "relative_bias" not in free or declared.relative_bias != "none"
            if fits and (fault.reaches(component) or _is_turned(fault, declared)):
                yield added, Variant({}, (fault,), declared)


def _is_turned(fault: Fault, declared: Choices) -> bool:
    """Say whether a mistake is one of the turns that attention makes inside."""
    return fault.reaches("rotary") and declared.attention_rotary != "none"


def _unmeasured(component: str, known: Mapping[str, Value]) -> Iterator[Mapping[str, Value]]:
    """Yield what may be chosen where no option gives the numbers of later parts."""
    match component:
        case "multi_head_attention" if str(known.get("relative_bias", "")).startswith("buckets"):
            yield from bucket_options()
        case "multi_head_attention":
            # Positions that turn nothing fit as well.
            for positions, causality in product(({}, *_POSITIONS), ("built-in", "by-mask")):
                yield {"attention_causality": causality, **positions}
        case "feed_forward" if known.get("feed_forward_gate") == "gated":
            yield from ({"activation": one.name} for one in CHOICES["activation"].options)
        case "rms_norm":
            weights = [one.name for one in CHOICES["rms_weight"].options if one.name != "none"]
            for weight, epsilon in product(weights, (1e-6, 1e-5, 1e-8, 1e-12)):
                yield {"rms_weight": weight, "rms_epsilon": epsilon}


_POSITIONS: tuple[Mapping[str, Value], ...] = (
    *(one for one in TURNED if one["rotary_base"] == BASES[0]),
    *BIASED,
)
"""The positions inside attention that are tried."""
