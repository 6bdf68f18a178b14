"""A backend that is trained in a process of its own, which tells its parent every step."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from attentest.harness.description import Facts, described
from attentest.harness.errors import Refused
from attentest.harness.process import Worker
from attentest.harness.worker import serve, tell
from attentest.results.output import Occupied
from attentest.results.text import line
from attentest.studies.learning.learner import Here
from attentest.studies.learning.regime import Regime
from attentest.studies.learning.result import Curve, Point
from attentest.studies.learning.training import Told
from attentest.targets import resolve
from attentest_spec import UnknownName
from attentest_spec.registry import LoadFailure


@dataclass(frozen=True)
class Apart:
    """The backend of a target, by what it is called.

    Its process may be silent for `limit` seconds and use `memory` GiB; it is ended when `stop` is
    set.
    """

    label: str
    target: str
    limit: float
    memory: float
    stop: threading.Event

    def facts(self) -> Facts:
        """See :class:`~attentest.studies.learning.learner.Learner`."""
        with self._answers({"question": "facts"}) as answers:
            for message in answers:
                return Facts.read(message)
        raise AssertionError  # the answers end in an error

    def train(self, regime: Regime, seed: int, path: Path | None, told: Told) -> Curve:
        """See :class:`~attentest.studies.learning.learner.Learner`."""
        job = {
            "question": "train",
            "label": self.label,
            "regime": regime.as_dict(),
            "seed": seed,
            "path": str(path.absolute()) if path else None,
        }
        points = []
        with self._answers(job) as answers:
            for message in answers:
                match message:
                    case {"type": "step", "step": int(step)}:
                        told(step)
                    case {"type": "point", "point": dict(point)}:
                        points.append(Point(**point))
                    case {"type": "trained", "seconds": seconds, "cpu_seconds": cpu_seconds}:
                        return Curve(self.label, seed, tuple(points), seconds, cpu_seconds)
        raise AssertionError  # the answers end in an error

    @contextmanager
    def _answers(self, job: dict[str, Any]) -> Iterator[Iterator[dict[str, Any]]]:
        given = {**job, "target": self.target}
        with Worker("attentest.studies.learning.worker", given, self.memory, self.stop) as worker:
            worker.limit = self.limit
            yield self._read(worker)

    def _read(self, worker: Worker) -> Iterator[dict[str, Any]]:
        """Yield the answers; raise what ends them."""
        for message in worker.messages():
            match message:
                case {"type": "unloaded", "reason": reason}:
                    raise LoadFailure(reason)
                case {"type": "refused", "reason": reason}:
                    raise Refused(reason)
                case {"type": "occupied", "reason": reason}:
                    raise Occupied(reason)
            yield message
        _, reason = worker.mishap()
        raise Refused(reason)


def work(job: dict[str, Any], channel: TextIO) -> None:
    """Answer one question of the parent."""
    try:
        backend = resolve.load(job["target"], {})
        if job["question"] == "facts":
            tell(channel, type="facts", **described(backend))
            return
        _train(Here(job["label"], backend), job, channel)
    except (LoadFailure, UnknownName) as failure:
        tell(channel, type="unloaded", reason=line(str(failure), 1000))
    except Refused as failure:
        tell(channel, type="refused", reason=line(str(failure), 1000))
    except Occupied as failure:
        tell(channel, type="occupied", reason=line(str(failure), 1000))
    except Exception as failure:  # describing a backend runs code of its author
        tell(channel, type="refused", reason=line(f"it could not be described: {failure}", 1000))


def _train(here: Here, job: dict[str, Any], channel: TextIO) -> None:
    path = Path(job["path"]) if job["path"] else None
    curve = here.train(
        Regime.from_dict(job["regime"]),
        job["seed"],
        path,
        lambda step: tell(channel, type="step", step=step),
    )
    for point in curve.points:
        tell(channel, type="point", point=asdict(point))
    tell(channel, type="trained", seconds=curve.seconds, cpu_seconds=curve.cpu_seconds)


if __name__ == "__main__":
    serve(work)
