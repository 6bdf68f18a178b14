"""What was asked of a backend in one example, kept so that another backend can be asked the same.

A trace is a list of steps. Every part that is built or made gets a number; a step says which part
was asked (or the backend itself), how, and what came of it: a value or the exception it raised.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attentest_spec import Backend, Gradient
from attentest_spec.contract import Input

if TYPE_CHECKING:
    from attentest.subject import Probe

BACKEND = -1
"""The number that stands for the backend itself."""


@dataclass(frozen=True)
class Question:
    """A call of a component: the probe as it was then, with its parameters, and the inputs."""

    probe: "Probe"
    inputs: tuple[Input, ...]
    method: str = ""


@dataclass(frozen=True)
class Step:
    """One thing asked: of which part, how, what came of it, and which part it made.

    `question` is there for calls alone.
    """

    asked: int
    ask: Callable[[Any], Any]
    outcome: Any
    made: int | None = None
    question: Question | None = None


def kept(outcome: Any) -> Any:
    """Return `outcome` with copies of its arrays: a backend may write into what it returned."""
    if isinstance(outcome, np.ndarray):
        return outcome.copy()
    if isinstance(outcome, Gradient):
        return replace(
            outcome,
            output=kept(outcome.output),
            inputs=kept(outcome.inputs),
            parameters=kept(dict(outcome.parameters)),
        )
    if isinstance(outcome, tuple):
        return tuple(kept(one) for one in outcome)
    if isinstance(outcome, dict):
        return {name: kept(one) for name, one in outcome.items()}
    return outcome


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
