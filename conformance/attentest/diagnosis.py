"""Names the mistake: which option or catalogued fault gives the same wrong output.

One engine, :func:`explain`: run variants on the same inputs and keep those that reproduce the
output. Variants are the other options of every choice, evaluated by the oracle, and the faults of
the catalogue, planted into a specimen that has the backend's choices, sizes and parameters.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from attentest.compare import as_floats, distance, error_bound
from attentest.outcome import Absent, BackendError, Violation
from attentest.subject import Call, Probe, Subject
from attentest_spec import CHOICES, Choices
from attentest_spec.setting import Array, Floats

SECONDS = 2.0
"""How long a diagnosis may take."""

Variant = Callable[[], Array]


@dataclass(frozen=True)
class Match:
    """A variant that reproduces an output, and the difference that is left."""

    name: str
    difference: float


def explain(
    actual: Array, variants: Mapping[str, Variant], bound: float, seconds: float = SECONDS
) -> list[Match]:
    """Return the variants that give `actual` to within `bound`, the closest first.

    A variant that raises explains nothing. Those not reached within `seconds` are left out.
    """
    end = time.perf_counter() + seconds
    found = []
    for name, variant in variants.items():
        if time.perf_counter() > end:
            break
        try:
            result = variant()
        except (ArithmeticError, ValueError, LookupError, BackendError, Absent, Violation):
            continue
        if result.shape == actual.shape and distance(actual, result) <= bound:
            found.append(Match(name, distance(actual, result)))
    return sorted(found, key=lambda match: match.difference)


def diagnose(subject: Subject, most: int = 3) -> tuple[str, ...]:
    """Say what the first wrong output of the last example looks like, the closest first."""
    for call in subject.calls:
        probe = call.probe
        actual = as_floats(call.output)
        try:
            expected = _expected(call)
        except (LookupError, ValueError):  # the oracle refuses it too, or lacks parameters
            continue
        bound = error_bound(
            probe,
            call.inputs,
            expected,
            method=call.method,
            difference=distance(actual, expected) if actual.shape == expected.shape else 0.0,
        )
        if actual.shape == expected.shape and distance(actual, expected) <= bound:
            continue
        matches = explain(actual, dict(_variants(call)), bound)
        return tuple(f"{one.name}, to {one.difference:.2g}" for one in matches[:most])
    return ()


def _expected(call: Call, choices: Choices | None = None) -> Floats:
    result = call.probe.expected(*call.inputs, method=call.method, choices=choices)
    return as_floats(result[0] if isinstance(result, tuple) else result)


def _variants(call: Call) -> Iterator[tuple[str, Variant]]:
    yield from _options(call)
    yield from _faults(call)


def _options(call: Call) -> Iterator[tuple[str, Variant]]:
    """Yield the oracle under every other option of every choice, one flipped at a time."""
    declared = call.probe.subject.choices
    for choice in CHOICES.values():
        for option in choice.options:
            if option.name == declared[choice.name]:
                continue
            other = declared.but(**{choice.name: option.name})
            name = f"equals the option {option.name} of the choice {choice.name} ({option.meaning})"
            yield name, lambda other=other: _expected(call, other)  # type: ignore[misc]


def _faults(call: Call) -> Iterator[tuple[str, Variant]]:
    """Yield the faults that can reach the component, planted into a specimen like the backend."""
    try:
        from attentest.faults import faults
    except ImportError:  # the specimens are torch modules, and torch may not be there
        return
    probe = call.probe
    # The faults of the component itself come first: the time is limited.
    order = sorted(faults().items(), key=lambda item: probe.component not in item[1].changes)
    for slug, fault in order:
        fitting = all(probe.subject.choices[name] == value for name, value in fault.choices.items())
        if fault.kind in ("value", "loud") and fault.reaches(probe.component) and fitting:
            yield (
                f"equals the fault {slug}: {fault.wrong}",
                lambda slug=slug: _faulty(slug, call),  # type: ignore[misc]
            )


def _faulty(slug: str, call: Call) -> Array:
    """Return what the planted fault computes from the same inputs and parameters."""
    from attentest.faults import fault_of, infected
    from attentest.specimens import SPECIMENS, specimen_backend

    fault, probe = fault_of(slug), call.probe
    specimen = infected(fault, SPECIMENS[fault.specimens[0]])
    backend = specimen_backend(specimen, probe.subject.choices.as_dict())
    subject = Subject(backend, precision=probe.precision)
    planted: Probe = subject.part(probe.component, probe.sizes, parameters=probe.parameters or None)
    return as_floats(planted.output(*call.inputs, method=call.method))
