"""Replays what was asked of a backend in one example, so that another backend is asked the same.

A trace is a list of steps. Every part that is built or made has a number; a step says which part
was asked (or the backend itself), how, and what it answered: a value or the exception it raised.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from attentest.harness.copies import kept
from attentest.harness.subject import BACKEND, Step
from attentest_spec import Backend


def followed(steps: Sequence[Step], backend: Backend) -> Iterator[Any]:
    """Ask `backend` the same and yield what comes of each step, an exception as itself.

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
        yield kept(outcome)
