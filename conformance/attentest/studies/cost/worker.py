"""The process in which one backend is measured: it answers one question after the other."""

from dataclasses import asdict
from queue import SimpleQueue
from typing import Any, TextIO

from attentest.harness.description import described
from attentest.harness.errors import Refused
from attentest.harness.worker import serve, tell
from attentest.results.text import line, summary
from attentest.studies.cost.plan import Plan, Point
from attentest.studies.cost.stand import Stand
from attentest.targets import resolve
from attentest_spec import UnknownName
from attentest_spec.registry import LoadFailure

_QUESTIONS: "SimpleQueue[dict[str, Any]]" = SimpleQueue()


def work(job: dict[str, Any], channel: TextIO) -> None:
    """Load the backend of `job` and answer what is asked of it, until the parent is gone."""
    try:
        backend = resolve.load(str(job["target"]), {})
        told = described(backend)
    except (LoadFailure, UnknownName) as failure:
        tell(channel, type="failed", reason=line(str(failure), 1000))
        return
    except Exception as failure:  # describing a backend runs code of its author
        tell(channel, type="refused", reason=f"it could not be described: {summary(failure)}")
        return
    tell(channel, type="loaded", **told)
    stand = Stand(backend, alone=True)
    while True:
        question = _QUESTIONS.get()
        try:
            tell(channel, type="answer", answer=_answer(stand, question))
        except Refused as failure:
            tell(channel, type="refused", reason=line(str(failure), 1000))
        except Exception as failure:  # what it tells of itself may be anything
            tell(channel, type="refused", reason=f"it cannot be measured: {summary(failure)}")


def _answer(stand: Stand, question: dict[str, Any]) -> Any:
    match question:
        case {"asked": "holding", "plan": plan, "point": point}:
            return asdict(stand.holding(Plan.from_dict(plan), Point(**point)))
        case {"asked": "prepare", "plan": plan, "point": point}:
            return stand.prepare(Plan.from_dict(plan), Point(**point))
        case {"asked": "sample", "which": which}:
            return asdict(stand.sample(which))
    raise AssertionError(f"nobody asks {question}")


if __name__ == "__main__":
    serve(work, _QUESTIONS)
