"""Identifies a backend: which option of every choice its numbers show, whatever it declares."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from attentest.analysis.identify.finding import (
    CANNOT_TELL,
    CLOSE,
    MEASURED,
    NONE_FITS,
    Evidence,
    Finding,
    merged,
)
from attentest.analysis.identify.language import COMPONENT, measure_language
from attentest.analysis.identify.measure import measure
from attentest.analysis.identify.reach import axes_of
from attentest.harness.subject import Subject
from attentest_spec import CHOICES, COMPONENTS, Backend, Choices
from attentest_spec.choices import Value
from attentest_spec.names import require
from attentest_spec.precision import PRECISIONS, epsilon


def identify(
    backend: Backend,
    components: Sequence[str] = (),
    *,
    precision: str = "",
    device: str = "cpu",
) -> dict[str, Finding]:
    """Measure which option of every choice `backend` uses, and return it with the declared one.

    `components` are measured, all that it provides by default, the smallest first, in `precision`,
    the finest that it computes in by default. What it declares is never used to measure. Raises
    UnknownName for a component or a precision that is none.
    """
    for name in components:
        require("component", name, COMPONENTS)
    precision = require("precision", precision, PRECISIONS) if precision else backend.limits.finest
    measured = [name for name in COMPONENTS if name in (components or backend.components)]
    known, evidence = Choices(), list[Evidence]()
    for component in measured:
        if axes_of(component):
            wanted = backend.limits.precision_of(component, precision)
            subject = Subject(backend, choices=known, precision=wanted, device=device)
            shown = measure(subject, component, known)
            evidence += shown
            known = known.but(**_values(shown))
    if COMPONENT in measured:
        wanted = backend.limits.precision_of(COMPONENT, precision)
        subject = Subject(backend, choices=known, precision=wanted, device=device)
        shown_before = {one.choice for one in evidence if one.status == MEASURED}
        whole = measure_language(subject)
        evidence += [one for one in whole if one.choice not in shown_before]
    declared: Mapping[str, Value] = dict(backend.choices)
    tolerance = max(CLOSE, 8.0 * epsilon(precision))
    found = {
        name: merged(
            name,
            declared.get(name),
            [one for one in evidence if one.choice == name],
            tolerance,
        )
        for name in CHOICES
    }
    inferred = bool(getattr(backend, "understood", ()))
    return {name: replace(one, inferred=inferred) for name, one in found.items()}


def measured_choices(
    backend: Backend,
    components: Sequence[str] = (),
    *,
    precision: str = "",
    device: str = "cpu",
) -> Choices:
    """Return what :func:`identify` measures, and what is declared where it cannot tell.

    A choice that is neither measured nor declared has its default option. Raises what
    identify raises, and ValueError for a declaration that is not well formed.
    """
    found = identify(backend, components, precision=precision, device=device)
    measured = {name: one.measured for name, one in found.items() if one.measured is not None}
    return Choices.of({**backend.choices, **measured})


def _values(evidence: Sequence[Evidence]) -> dict[str, Value]:
    return {one.choice: one.value for one in evidence if one.value is not None}


__all__ = [
    "CANNOT_TELL",
    "MEASURED",
    "NONE_FITS",
    "Evidence",
    "Finding",
    "identify",
    "measured_choices",
]
