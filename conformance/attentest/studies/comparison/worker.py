"""A backend that is compared in processes of its own."""

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from attentest.harness.child import Interrupted, Job, answer, asked
from attentest.harness.errors import Refused
from attentest.results.text import line
from attentest.studies.comparison.account import Account
from attentest.studies.comparison.example import Example
from attentest.studies.comparison.participant import Here
from attentest.studies.comparison.recording import Event, Place, Recording
from attentest.targets import resolve
from attentest_spec import Choices, UnknownName
from attentest_spec.registry import LoadFailure


@dataclass(frozen=True)
class Apart:
    """The backend of a target; each question has a process, and `limit` seconds.

    Once `stop` is set, whoever waits for an answer is given Stopped.
    """

    target: str
    limit: float
    stop: threading.Event = field(default_factory=threading.Event)

    def account(self) -> Account:
        """See :class:`~attentest.studies.comparison.participant.Participant`."""
        return Account.from_dict(self._asked({"question": "account"}))

    def record(self, choices: Choices, components: Sequence[str], example: Example) -> Recording:
        """See :class:`~attentest.studies.comparison.participant.Participant`."""
        found = self._asked(
            {
                "question": "record",
                "choices": choices.as_dict(),
                "components": list(components),
                "example": example.as_dict(),
            }
        )
        return {Place(*one["place"]): Event.from_dict(one["event"]) for one in found}

    def _asked(self, job: Job) -> Any:
        try:
            job = {**job, "target": self.target}
            found = asked("attentest.studies.comparison.worker", job, self.limit, self.stop)
        except Interrupted as how:
            raise Refused(str(how)) from None
        if "unloaded" in found:
            raise LoadFailure(found["unloaded"])
        if "refused" in found:
            raise Refused(found["refused"])
        return found["answer"]


def _answered(job: Job) -> Job:
    try:
        return {"answer": _answer(Here(resolve.load(job["target"], {})), job)}
    except (LoadFailure, UnknownName) as failure:
        return {"unloaded": line(str(failure), 1000)}
    except Refused as failure:
        return {"refused": line(str(failure), 1000)}


def _answer(here: Here, job: Job) -> Any:
    if job["question"] == "account":
        return here.account().as_dict()
    recording = here.record(
        Choices.of(job["choices"]), job["components"], Example.from_dict(job["example"])
    )
    return [
        {"place": list(asdict(place).values()), "event": event.as_dict()}
        for place, event in recording.items()
    ]


if __name__ == "__main__":
    answer(_answered)
