"""The limits that a backend is assumed to have by its use, each in a module of its own."""

from typing import Any

from attentest.targets.adapt.assumptions.calls_of_one import with_calls_of_one_sequence
from attentest.targets.adapt.assumptions.devices import B, with_one_device
from attentest.targets.adapt.assumptions.one_sequence import with_one_sequence
from attentest.targets.adapt.assumptions.promoted import with_own_precisions
from attentest.targets.adapt.assumptions.shared import with_own_arrays
from attentest.targets.adapt.assumptions.uninitialised import with_values_of_others
from attentest.targets.adapt.reading import Reading

_LIMITS = (
    with_one_device,
    with_own_arrays,
    with_values_of_others,
    with_one_sequence,
    with_own_precisions,
)


def limited_by_use(backend: B, reading: Reading, thing: Any = None) -> B:
    """Return the inferred `backend` of `thing` within the limits that its use is assumed to have.

    Nothing is assumed where the user is strict, or of a backend that was written and not inferred.
    """
    if reading.strict or not getattr(backend, "understood", ()):
        return backend
    for limit in _LIMITS:
        backend = limit(backend)
    return with_calls_of_one_sequence(backend, thing)
