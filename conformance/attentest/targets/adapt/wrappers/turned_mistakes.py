"""Attention that is given rotary positions, and has the numbers of the reference but for a mistake.

A mistake that no design makes, and that gives exactly the numbers, shows that the tables are those
that its caller gives.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from attentest.analysis.diagnosis.variants import Variant
from attentest.analysis.identify.attending import LENGTH, WIDE_HEAD, normalised, wide_sizes
from attentest.analysis.identify.measure import sizes_for
from attentest.analysis.identify.parts import Part
from attentest.analysis.identify.station import Station
from attentest.analysis.identify.structure import asking
from attentest.faults import faults
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.mistaken import CLOSE
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.wrappers.wrapper import Wrapper
from attentest_spec import Choices
from attentest_spec.choices import Value

COMPONENT = "multi_head_attention"

SECONDS = 12.0
"""Time after which no further reading is tried."""

_SCALE = "attention.scale-missing"
_NO_DESIGN = (
    _SCALE,
    "attention.scale-by-model-width",
    "attention.scale-multiplied",
    "attention.softmax-over-queries",
    "multi_head_attention.keys-not-turned",
    "multi_head_attention.turned-twice",
    "multi_head_attention.pairs-of-keys-mixed",
    "multi_head_attention.second-halves-crossed",
    "multi_head_attention.next-key-seen",
    "multi_head_attention.own-key-hidden",
    "multi_head_attention.split-without-transpose",
    "multi_head_attention.merged-without-transpose",
    "rotary.minus-missing",
    "rotary.second-column-without-sine",
    "rotary.first-column-turned-first",
)
"""Mistakes that no design makes; those in tables are not among them, as its caller makes these."""

_OF_SCALE = re.compile(r"(?!rope|rotary).*(scal|multiplier|temperature|factor|mup|divisor).*")
"""Names of arguments and fields that may be the scale of the scores: 1 may be meant then."""

ASSUMED = (
    "assumed attention_rotary=query-and-key and rotary_pairs={}: with them, and with one mistake "
    "({}), its numbers are those of the reference"
)


def around_turned_mistake(
    code: Code, reading: Reading, read: Callable[[Code, Reading], Any], wrapper: Wrapper
) -> Any:
    """Return the backend of wrapped `code` that has the numbers but for one mistake, or None."""
    if code.component != COMPONENT or reading.strict:
        return None
    clock = Clock(SECONDS)
    for pairs in ("halves", "adjacent"):
        if clock.rings():
            return None
        declared = _declared(pairs, wrapper)
        if any(declared.get(name, one) != one for name, one in reading.choices.items()):
            continue
        choices = {**reading.choices, **declared}
        tried = replace(reading, component=COMPONENT, choices=choices, anyway=True)
        try:
            backend = read(code, tried)
        except Unclear:
            continue
        if found := _mistake(backend, code, clock):
            return _judged(backend, found, pairs)
    return None


def _judged(backend: Any, found: Variant, pairs: str) -> Any:
    """Return `backend` with the choices under which the mistake `found` gives its numbers."""
    own = ("attention_causality", "rotary_arithmetic", *_OF_NORMS)
    choices = {**backend.choices, **{name: found.declared[name] for name in own}}
    said = ASSUMED.format(pairs, found.faults[0].slug)
    first, *rest = backend.understood
    assumed, understood = (said, *backend.assumed), (first, said, *rest)
    return replace(backend, choices=choices, assumed=assumed, understood=understood)


_OF_NORMS = ("query_key_norm_place", "rms_weight", "rms_epsilon")
"""The choices of norms of queries and keys."""


def _declared(pairs: str, wrapper: Wrapper) -> dict[str, Value]:
    part = wrapper.options.get("part", 1.0)
    return {
        "attention_rotary": "query-and-key",
        "rotary_pairs": pairs,
        "rotary_base": "10000",
        "rotary_width": "whole" if part == 1 else part,
    }


def _mistake(backend: Any, code: Code, clock: Clock) -> Variant | None:
    """Return the mistake that gives the numbers of `backend` in wide heads, None for none."""
    try:
        station = _station(backend)
    except (Absent, BackendError, Violation):
        return None
    for variant in _variants(Choices.of(dict(backend.choices)), code):
        if clock.rings():
            return None
        if _gives(variant, station):
            return variant
    return None


def _station(backend: Any) -> Station:
    """Return the answer of attention with wide heads to a sequence in which distances differ."""
    choices = Choices.of(dict(backend.choices))
    subject = Subject(asking(backend, choices), choices=choices, precision=backend.limits.finest)
    sizes = subject.limits.fitted(wide_sizes(sizes_for(subject), WIDE_HEAD))
    part = Part(COMPONENT, subject.part(COMPONENT, sizes), choices)
    return Station.of(part.probe, part.drawn(), part.inputs(length=LENGTH))


def _variants(known: Choices, code: Code) -> Iterator[Variant]:
    catalogue = faults()
    normal = [one for one in normalised(known) if one.rms_arithmetic == "as-computed"]
    for base, name, order in product(normal, _NO_DESIGN, ("by-mask", "built-in")):
        fault = catalogue[name]
        declared = base.but(attention_causality=order)
        fitting = all(declared[one] == value for one, value in fault.choices.items())
        if fitting and not (name == _SCALE and _says_scale(code)):
            for arithmetic in ("as-computed", "float32"):
                yield Variant({}, (fault,), declared.but(rotary_arithmetic=arithmetic))


def _says_scale(code: Code) -> bool:
    """Say whether an argument of the constructor, or a field of its settings, may be the scale."""
    built = code.construction
    names = () if built is None else _names(built.arguments, built)
    return any(_OF_SCALE.fullmatch(squashed(one)) for one in names)


def _names(arguments: Any, built: Any) -> Iterator[str]:
    yield from arguments
    for filling in built.fillings.values():
        made = getattr(filling.value, "make", None)
        if made is not None:
            yield from _fields_of(filling.value)


def _fields_of(built: Any) -> Mapping[str, Any] | tuple[str, ...]:
    annotated = getattr(built.make, "__dataclass_fields__", {})
    return (*built.arguments, *annotated)


def _gives(variant: Variant, station: Station) -> bool:
    """Say whether a mistake gives the numbers of the code."""
    try:
        part = variant.backend().build(COMPONENT, station.probe.sizes)
        part.load(station.probe.parameters)
        output = part(*deepcopy(station.inputs))  # some mistakes write into it
    except Exception:  # a mistake may show itself by raising
        return False
    array = np.asarray(output[0] if isinstance(output, tuple) else output)
    if array.shape != station.actual.shape:
        return False
    return bool(np.abs(array - station.actual).max() <= CLOSE * np.abs(station.actual).max())
