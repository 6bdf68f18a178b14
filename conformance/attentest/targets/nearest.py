"""The first difference from the formula under the nearest reading of code that is asked about.

No reading reproduces the numbers of such code. Where they leave the reference's helps to answer the
question, and is no verdict: the reading may be what is wrong.
"""

import linecache
from pathlib import Path

from attentest.analysis.lines import Locator
from attentest.analysis.lines.cases import own_cases
from attentest.analysis.lines.recording import Place
from attentest.analysis.undeclared import effective_choices
from attentest.harness.subject import Subject
from attentest.results.verdict import Location
from attentest_spec import Backend


def nearest(backend: Backend, component: str) -> str:
    """Return a sentence on the first difference of `component`, "" where no line is known."""
    location = first_difference(backend, component)
    return "" if location is None else sentence(location)


def first_difference(backend: Backend, component: str) -> Location | None:
    """Return the line at which the numbers of `component` first leave the reference's."""
    try:
        finest = backend.limits.finest
        choices = effective_choices(backend, finest)
        subject = Subject(backend, choices=choices, precision=finest)
        case = next(own_cases(subject, component), None)
    except Exception:  # code that a user wrote may raise anything
        return None
    return None if case is None else Locator().locate(subject, case.steps)


def sentence(location: Location) -> str:
    """Return where the numbers leave the reference's, and what is computed there, in words."""
    step = location.step.rpartition(".")[2]
    computed = f", and {location.computed} is computed" if location.computed else ""
    return (
        f"In the nearest reading, the first step that differs is {step!r}: "
        f"{shown_line(location)}, where {location.expected} is expected{computed}."
    )


def shown_line(at: Location | Place) -> str:
    """Return a file, a line and its code."""
    code = linecache.getline(at.file, at.line).strip()
    return f"{Path(at.file).name}:{at.line} ({code})"
