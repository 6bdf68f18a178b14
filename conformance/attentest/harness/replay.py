"""Replay of the steps of one example on another backend.

A trace is a list of steps. Every part that is built or made has a number; a step holds the number
of the part that was called (or of the backend itself), the call, and its outcome: a value or the
exception that it raised.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from attentest.harness.copies import copy_arrays
from attentest.harness.subject import BACKEND, Step
from attentest_spec import Backend


def replay(steps: Sequence[Step], backend: Backend) -> Iterator[Any]:
    """Repeat the steps on `backend` and yield the outcome of each, an exception as itself.

    Ends early where a part could not be made that later steps need.
    """
    parts: dict[int, Any] = {BACKEND: backend}
    for step in steps:
        if step.asked not in parts:
            return
        try:
            outcome = step.ask(parts[step.asked])
        except Exception as failure:
            yield failure
            continue
        if step.made is not None:
            parts[step.made] = outcome
        yield copy_arrays(outcome)
