"""A backend that is trained: its description, and its curve from one seed."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from attentest.harness.description import Facts, described
from attentest.harness.errors import Absent, BackendError, Unavailable
from attentest.harness.messages import Listener, Methods
from attentest.harness.process import Isolation
from attentest.results.output import Occupied
from attentest.results.text import summary
from attentest.studies.learning.checkpoint import State, load_state, save_state
from attentest.studies.learning.regime import Regime
from attentest.studies.learning.result import Curve, Point
from attentest.studies.learning.training import Progress, Trainer
from attentest.studies.participants import Local, Participant, Remote, ask, on_target
from attentest_spec import Backend, Choices


def facts(participant: Participant) -> Facts:
    """Return what it states of itself."""
    return ask(participant, "facts", Facts.read)


def train(
    participant: Participant,
    label: str,
    regime: Regime,
    seed: int,
    path: Path | None,
    progress: Progress,
) -> Curve:
    """Train the model of a participant, from the checkpoint at `path` on where there is one.

    `progress` is called with the number of steps that are done. Raises Occupied for a checkpoint of
    something else, besides what every participant raises.
    """

    def read(answer: Mapping[str, Any]) -> Curve:
        points = tuple(Point(**one) for one in answer["points"])
        return Curve(label, seed, points, answer["seconds"], answer["cpu_seconds"], answer["parts"])

    return ask(
        participant,
        "train",
        read,
        listen=lambda event: progress(int(event["step"])),
        label=label,
        regime=regime.as_dict(),
        seed=seed,
        path=str(path.absolute()) if path else None,
    )


def local(backend: Backend) -> Local:
    """Return `backend` as a participant in this process."""
    return Local(methods(backend))


def remote(target: str, isolation: Isolation) -> Remote:
    """Return the backend of `target` as a participant in processes of its own."""
    return Remote(__name__, (target,), isolation)


def methods(backend: Backend) -> Methods:
    """Return what a participant answers about `backend`."""
    return {"facts": partial(_facts, backend), "train": partial(_train, backend)}


METHODS = on_target(methods)


def _facts(backend: Backend) -> dict[str, Any]:
    try:
        return described(backend)
    except Exception as failure:  # describing a backend runs code of its author
        raise Unavailable(f"it could not be described: {summary(failure)}") from failure


def _train(
    backend: Backend,
    *,
    label: str,
    regime: Mapping[str, Any],
    seed: int,
    path: str | None,
    tell: Listener,
) -> dict[str, Any]:
    place = Path(path) if path else None
    asked = Regime.from_dict(regime)
    try:
        choices = Choices.of(backend.choices).as_dict()
        marks = {"backend": label, "seed": seed, "choices": choices, **asked.as_dict()}
        trainer = Trainer.of(backend, asked, seed, load_state(place, marks) if place else None)
        end = trainer.train(partial(_save, place, marks), lambda step: tell({"step": step}))
    except (Absent, BackendError) as failure:
        raise Unavailable(str(failure)) from failure
    except (Unavailable, Occupied):
        raise
    except Exception as failure:  # what it answers may have any form
        raise Unavailable(f"what it answers cannot be used: {summary(failure)}") from failure
    return {
        "points": [asdict(point) for point in end.points],
        "seconds": end.seconds,
        "cpu_seconds": end.cpu_seconds,
        "parts": dict(trainer.parts.origin),
    }


def _save(path: Path | None, marks: Mapping[str, Any], state: State) -> None:
    if path is not None:
        save_state(path, state, marks)
