"""Measures choices that a backend leaves undeclared where the paper does not specify an option.

The paper names layer normalisation and gives no formula, so any listed one conforms. One that is
not declared is identified, and where no option fits, the closest of those in use is taken.
"""

from attentest.analysis.identify.norms import FORMULA, norm_candidates, norm_station, variations
from attentest.analysis.identify.parts import Part
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest_spec import Backend, Choices, Sizes


def effective_choices(backend: Backend, precision: str = "", device: str = "cpu") -> Choices:
    """Return the choices that `backend` is judged under: declared ones, and measured ones.

    `precision` is the one to measure in, the finest that the backend claims by default.

    Raises ValueError or UnknownName where its declaration is not well formed.
    """
    declared = Choices.of(backend.choices)
    open_axes = [axis for axis in FORMULA if axis not in backend.choices]
    if not open_axes or "layer_norm" not in backend.components:
        return declared
    try:
        finest = precision or backend.limits.finest
        subject = Subject(backend, choices=declared, precision=finest, device=device)
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
