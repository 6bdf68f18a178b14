"""A worker process: judges the clauses of one backend and tells its parent, line by line.

Standard input holds one JSON job and stays open for as long as the parent lives, which may ask more
on it. The pipe that was standard output when the process started carries JSON lines to the parent;
before any backend is imported, standard output is joined to standard error and standard input is
emptied, so that nothing a backend prints or reads can reach those pipes.
"""

import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from io import TextIOWrapper
from queue import SimpleQueue
from typing import Any, TextIO

import numpy as np

from attentest import targets
from attentest.bench import Bench
from attentest.judge import judge
from attentest.measured import statements
from attentest.outcome import summary
from attentest.plain import line, plain, plain_value
from attentest.plan import Plan
from attentest.registry import checks
from attentest_spec import Backend, UnknownName
from attentest_spec.registry import LoadFailure


def serve(
    work: Callable[[dict[str, Any], TextIO], None],
    questions: "SimpleQueue[dict[str, Any]] | None" = None,
) -> None:
    """Read the job, `work`, and leave without running what a backend registered for the end.

    What the parent asks later is put into `questions`.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if isinstance(sys.stdout, TextIOWrapper):  # the last words of one that dies are told
        sys.stdout.reconfigure(line_buffering=True)
    job = json.loads(sys.stdin.readline())
    heard = [os.dup(0), questions]
    threading.Thread(target=_leave_with_parent, args=heard, daemon=True).start()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    work(job, channel)
    channel.close()
    os._exit(0)


def _leave_with_parent(pipe: int, questions: "SimpleQueue[dict[str, Any]] | None") -> None:
    """Listen until the parent is gone, then end this process with all its children."""
    with open(pipe, "rb") as lines:
        for one in lines:
            if questions is not None:
                questions.put(json.loads(one))
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def work(job: dict[str, Any], channel: TextIO) -> None:
    """Load the backend of `job`, describe it, and judge every clause of its plan."""
    plan = Plan.from_dict(job["plan"])
    target = str(job["target"])
    checks()  # imported before the backend, which may change what imports find
    try:
        backend = _loaded(target, plan)
        facts = described(backend)
    except (LoadFailure, UnknownName) as failure:
        tell(channel, type="failed", reason=line(str(failure), 1000))
        return
    except Exception as failure:  # describing a backend runs code of its author
        tell(channel, type="failed", reason=f"{target} could not be described: {summary(failure)}")
        return
    tell(channel, type="loaded", **facts)
    bench = Bench(
        backend,
        precision=plan.precision,
        device=plan.device,
        seed=plan.seed,
        effort=plan.effort,
        shrink=plan.shrink,
        diagnose=plan.diagnose,
        loader=targets.loader(target, plan.reading),
    )
    for slug in plan.clauses:
        tell(channel, type="start", clause=slug)
        verdict = judge(bench, slug, lambda found: tell(channel, type="found", **found.as_dict()))
        tell(channel, type="verdict", **verdict.as_dict())
    tell(channel, type="measured", statements=_measured(bench))


def _measured(bench: Bench) -> dict[str, str]:
    try:
        return statements(bench.subject())
    except Exception as failure:  # measuring is no judging: it may not cost a verdict
        return {"measuring": f"not finished: {summary(failure)}"}


def _loaded(target: str, plan: Plan) -> Backend:
    """Load the backend; how this process computes, warns and finds modules stays as it was."""
    path = list(sys.path)
    try:
        with np.errstate(), warnings.catch_warnings():
            return targets.load(target, plan.reading)
    finally:
        sys.path = [*sys.path, *(folder for folder in path if folder not in sys.path)]


def described(backend: Backend) -> dict[str, Any]:
    """Return what a backend says of itself, as plain values."""
    return {
        "title": line(str(backend.title), 200),
        "components": [line(str(name)) for name in backend.components],
        "understood": [plain(str(one), 500) for one in getattr(backend, "understood", ())],
        "choices": plain_value(dict(backend.choices)),
        "limits": plain_value(
            {
                name: sorted(value) if isinstance(value, tuple | list | set | frozenset) else value
                for name, value in vars(backend.limits).items()
            }
        ),
    }


def tell(channel: TextIO, **message: Any) -> None:
    """Send one message to the parent."""
    channel.write(json.dumps(plain_value(message)) + "\n")
    channel.flush()


if __name__ == "__main__":
    serve(work)
