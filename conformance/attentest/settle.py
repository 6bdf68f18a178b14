"""Settles what a backend left undeclared where the paper is silent: measures it.

The paper names layer normalisation and gives no formula, so any listed one conforms. One that is
not declared is identified, and where no option fits, the closest of those in use is taken.
"""

from attentest.identify.norms import FORMULA, norm_candidates, norm_station, variations
from attentest.identify.parts import Part
from attentest.outcome import Absent, BackendError, Violation
from attentest.subject import Subject
from attentest_spec import Backend, Choices, Sizes


def settle(backend: Backend, precision: str = "float64", device: str = "cpu") -> Choices:
    """Return the choices that `backend` is judged under.

    Raises ValueError or UnknownName where its declaration is not well formed.
    """
    declared = Choices.of(backend.choices)
    open_axes = [axis for axis in FORMULA if axis not in backend.choices]
    if not open_axes or "layer_norm" not in backend.components:
        return declared
    try:
        subject = Subject(backend, choices=declared, precision=precision, device=device)
        return _closest(subject, open_axes)
    except (Absent, BackendError, Violation):
        return declared  # the clauses will say what is wrong


def _closest(subject: Subject, axes: list[str]) -> Choices:
    probe = subject.part("layer_norm", Sizes(d_model=4))
    station = norm_station(Part("layer_norm", probe, subject.choices))
    found = norm_candidates(station, subject.choices, axes)[0][0]
    if station.fits(found):
        return found
    return station.ranked(variations(subject.choices, axes))[0][0]
