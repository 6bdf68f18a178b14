"""Measurement of the choices that one component shows.

The parameters come first: the structure that the part accepts. Each structure is measured in the
arithmetics that it may round in, and, where none explains it, with positions inside attention.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from attentest.analysis.identify.attending import (
    ATTENTION,
    HEAD,
    PARTS,
    TURNED,
    WIDE_HEAD,
    attending,
    several_steps,
    wide_sizes,
)
from attentest.analysis.identify.finding import CANNOT_TELL, MEASURED, NONE_FITS, Evidence
from attentest.analysis.identify.measurement import WIDTH, Measurement, reason_of
from attentest.analysis.identify.norms import options
from attentest.analysis.identify.parts import Part, has, rotary_sizes
from attentest.analysis.identify.reach import ARITHMETICS, axes_of
from attentest.analysis.identify.rounding import explains
from attentest.analysis.identify.station import Station
from attentest.analysis.identify.structure import WEIGHTED, asking, structures
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest_spec import CHOICES, COMPONENTS, Backend, Choices, Sizes
from attentest_spec.choices import Value

SMOOTHING = 0.3
"""The label smoothing: where the mass goes shows in every digit."""


def sizes_for(subject: Subject) -> Sizes:
    """Return small sizes inside the limits of the backend; no window ends within their texts."""
    limits = subject.limits
    sizes = Sizes(
        d_model=WIDTH,
        heads=min(2, limits.heads or 2),
        d_ff=2 * WIDTH,
        layers=min(2, limits.layers or 2),
        source_vocabulary=11,
        target_vocabulary=11,
        max_length=min(8, limits.length or 8),
        smoothing=SMOOTHING,
        kv_heads=1,
        window=64,
    )
    return limits.fitted(sizes)


def measure(subject: Subject, component: str, known: Choices) -> list[Evidence]:
    """Return the evidence of `component` for every choice that it shows; `known` is tried first.

    Never raises for what a backend does: a choice that cannot be measured gets the reason.
    """
    backend = subject.backend  # another declaration is asked for in its place
    plain = _without_order(subject, component, known)
    if component not in _WITH_ORDER or (
        plain.choices is not None and _fits_wide_heads(subject, component, plain.choices)
    ):
        return plain.evidence
    ordered = _of_order(subject, backend, component, known) if plain.has_norms else []
    if ordered or plain.choices is None:
        return ordered or plain.evidence
    text = f"in {component} no listed option fits where heads have {WIDE_HEAD} columns"
    return [replace(one, status=NONE_FITS, value=None, reason=text) for one in plain.evidence]


@dataclass(frozen=True)
class _Plain:
    """The evidence of a component without positions inside, and the choices that explain it.

    These are None where none do. `has_norms` says that its norms, if it has any, are those of an
    option.
    """

    evidence: list[Evidence]
    choices: Choices | None
    has_norms: bool = True


def _without_order(subject: Subject, component: str, known: Choices) -> _Plain:
    """Return the evidence of `component` if it has no positions inside."""
    first: list[Evidence] = []
    close: dict[float, _Plain] = {}
    has_norms = False
    try:
        sizes = sizes_for(subject)
        sizes = rotary_sizes(sizes, subject.limits.length) if component == "rotary" else sizes
        for structure, probe in structures(subject, component, sizes):
            closest: Measurement | None = None
            for arithmetic in _arithmetics(component, known):
                if closest and closest.rules_out(arithmetic):
                    continue
                choices = known.but(**arithmetic)
                measurement = Measurement(component, probe, structure, choices)
                measurement.take()
                shown = [*measurement.evidence, *_unordered(measurement)]
                found = _Plain(shown, measurement.part.choices)
                if measurement.exact or (measurement.explained and choices == known):
                    return found
                if measurement.explained:
                    close[measurement.difference] = found
                    if closest is None or measurement.difference < closest.difference:
                        closest = measurement
                first = first or measurement.evidence
                has_norms = has_norms or measurement.has_norms
                if measurement.far:
                    break
    except (Absent, BackendError, Violation) as failure:
        text = reason_of(component, failure)
        axes = axes_of(component)
        unknown = [Evidence(axis, component, CANNOT_TELL, reason=text) for axis in axes]
        return _Plain(first or unknown, None, has_norms=False)
    return close[min(close)] if close else _Plain(first, None, has_norms)


_OF_WEIGHTED = ("rms_weight", "rms_epsilon", "rms_arithmetic")
"""The choices that norms of queries and keys with weights show."""

_WITH_ORDER = (ATTENTION, "encoder_layer", "decoder_layer", "encoder", "decoder", "model")


def _unordered(measurement: Measurement) -> list[Evidence]:
    """Return that attention which its plain formula explains has no positions inside."""
    part = measurement.part
    axes = ("attention_rotary", "relative_bias") if part.component == ATTENTION else ()
    return [Evidence(axis, ATTENTION, MEASURED, part.choices[axis]) for axis in axes]


def _fits_wide_heads(subject: Subject, component: str, choices: Choices) -> bool:
    """Say whether `choices` explain wide heads too, or nothing tells.

    A quarter of two columns is none, and is not turned. A number in single precision, such as the
    root of the width, is rounded at one width and not at another, and changes far less.
    """
    wide = subject.limits.fitted(wide_sizes(sizes_for(subject), WIDE_HEAD))
    subject.begin()
    subject.backend = asking(subject.backend, choices)
    try:
        probe = subject.part(component, wide)
    except (Absent, BackendError, Violation):
        return True
    part = Part(component, probe, choices)
    inputs = several_steps(part)
    if explains(part, choices, inputs) is not False:
        return True
    try:
        return Station.of(probe, part.drawn(), inputs).distance(choices) <= _ROUNDED
    except (Absent, BackendError, Violation):
        return False


_ROUNDED = 1e-5
"""Difference that one number in single precision makes, relative to the largest number."""


def _of_order(subject: Subject, backend: Backend, component: str, known: Choices) -> list[Evidence]:
    """Return the evidence of attention with positions or a bias inside, [] where none explains it.

    What is not the first option of a choice that others do not measure is measured so. Heads are
    wider where a part of them alone may be turned.
    """
    for head, parts in ((HEAD, ("whole",)), (WIDE_HEAD, PARTS)):
        subject.backend = backend
        if found := _of_heads(subject, component, known, head, parts):
            return found
    return []


def _of_heads(
    subject: Subject, component: str, known: Choices, head: int, parts: Sequence[Value]
) -> list[Evidence]:
    """Return the same of heads of `head` columns, of which one of `parts` is turned."""
    try:
        wide = subject.limits.fitted(wide_sizes(sizes_for(subject), head))
        for structure, probe in structures(subject, component, wide):
            measurement = Measurement(component, probe, structure, known)
            measurement.begin()
            begun = measurement.part.choices
            found = attending(probe, begun, parts) if measurement.has_norms else None
            if found is None:
                continue
            found = _with_slopes(subject, component, found)
            measurement = Measurement(component, probe, structure, found)
            measurement.take()
            if measurement.explained:
                return [*measurement.evidence, *_ordered(measurement, begun)]
    except (Absent, BackendError, Violation):
        pass
    return []


def _ordered(measurement: Measurement, begun: Choices) -> Iterator[Evidence]:
    """Yield the evidence of what the positions inside attention show beside the other choices."""
    part, found = measurement.part, measurement.part.choices
    more = [axis for axis in CHOICES if axis not in measurement.axes]
    shown = [axis for axis in more if found[axis] != begun[axis]]
    if found.attention_rotary != "none":
        shown = [*dict.fromkeys([*shown, *TURNED])]
    if found.query_key_norm in WEIGHTED:
        shown = [*dict.fromkeys([*shown, "query_key_norm", *_OF_WEIGHTED])]
    single = found.but(rotary_arithmetic="float32")
    for axis in shown:
        exact = axis == "rotary_arithmetic" and found != single
        if exact and explains(part, single, several_steps(part)):
            text = f"in {part.component} as-computed and float32 give the same numbers"
            yield Evidence(axis, part.component, CANNOT_TELL, reason=text)
            continue
        difference = measurement.difference
        yield Evidence(axis, part.component, MEASURED, found[axis], difference=difference)


def _with_slopes(subject: Subject, component: str, found: Choices) -> Choices:
    """Return `found` with the list of slopes that three heads show: two have the same in both."""
    if not found.relative_bias.startswith("alibi") or (subject.limits.heads or 3) < 3:
        return found
    sizes = subject.limits.fitted(wide_sizes(sizes_for(subject).but(heads=3)))
    try:
        probe = subject.part(component, sizes)
    except (Absent, BackendError, Violation):
        return found
    for slopes in ("alibi", "alibi-geometric"):
        choices = found.but(relative_bias=slopes)
        part = Part(component, probe, choices)
        if explains(part, choices, several_steps(part)):
            return choices
    return found


def fits_at(backend: Backend, choices: Choices, **changes: int) -> bool | None:
    """Return whether `choices` explain the largest component at other sizes, None if unknown."""
    return _fits(backend, choices, changes, masked=False)


def fits_masked_at(backend: Backend, choices: Choices, **changes: int) -> bool | None:
    """Return what :func:`fits_at` does, of calls with masks that hide the last key."""
    return _fits(backend, choices, changes, masked=True)


def _fits(
    backend: Backend, choices: Choices, changes: Mapping[str, int], *, masked: bool
) -> bool | None:
    (*_, component) = [name for name in COMPONENTS if name in backend.components]
    subject = Subject(asking(backend, choices), choices=choices, precision=backend.limits.finest)
    sizes = backend.limits.fitted(sizes_for(subject).but(**changes))
    try:
        probe = subject.part(component, sizes)
    except (Absent, BackendError, Violation):
        return None
    part = Part(component, probe, choices, masked)
    # A sequence of one has the first position alone, whose sines and cosines are not rounded.
    head = max(1, sizes.d_model // sizes.heads)
    given = [part.inputs(length=length, head=head) for length in (3, 1)]
    fitting = [explains(part, choices, inputs) for inputs in given]
    return False if False in fitting else fitting[0]


def _arithmetics(component: str, known: Choices) -> list[dict[str, Value]]:
    """Return the arithmetics that `component` may round in: what its parts show, then the finest.

    An exact one lies within the tolerance of a rounded one, and never the other way round. In a
    model one that is rounded lies within that of another: where its parts alone do not tell which,
    the closest is taken.
    """
    axes = [axis for axis, part in ARITHMETICS.items() if has(component, part)]
    if has(component, "residual"):
        axes.remove("rms_arithmetic")  # the norms alone tell it
    every = [dict(zip(axes, one, strict=True)) for one in product(*map(options, axes))]
    return sorted(every, key=lambda one: any(known[axis] != one[axis] for axis in axes))
