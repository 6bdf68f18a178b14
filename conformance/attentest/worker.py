"""A worker process: judges the clauses of one backend and tells its parent, line by line.

Standard input holds one JSON job. The pipe that was standard output when the process started
carries JSON lines to the parent; before any backend is imported, standard output is joined to
standard error, so that nothing a backend prints can reach that pipe.
"""

import json
import os
import sys
from typing import Any, TextIO

from attentest import targets
from attentest.bench import Bench
from attentest.judge import judge
from attentest.measured import measured
from attentest.outcome import summary
from attentest.plan import Plan
from attentest_spec import Backend, UnknownName
from attentest_spec.registry import LoadFailure


def main() -> None:
    """Read the job, judge, and leave without running what a backend registered for the end."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    work(json.loads(sys.stdin.readline()), channel)
    channel.close()
    os._exit(0)


def work(job: dict[str, Any], channel: TextIO) -> None:
    """Load the backend of `job`, describe it, and judge every clause of its plan."""
    plan = Plan.from_dict(job["plan"])
    target = str(job["target"])
    try:
        backend = targets.load(target)
        facts = described(backend)
    except (LoadFailure, UnknownName) as failure:
        _tell(channel, type="failed", reason=str(failure))
        return
    except Exception as failure:  # describing a backend runs code of its author
        _tell(channel, type="failed", reason=f"{target} could not be described: {summary(failure)}")
        return
    _tell(channel, type="loaded", **facts)
    bench = Bench(
        backend,
        precision=plan.precision,
        device=plan.device,
        seed=plan.seed,
        effort=plan.effort,
        shrink=plan.shrink,
        loader=targets.loader(target),
    )
    for slug in plan.clauses:
        _tell(channel, type="start", clause=slug)
        _tell(channel, type="verdict", **judge(bench, slug).as_dict())
    _tell(channel, type="measured", statements=measured(bench))


def described(backend: Backend) -> dict[str, Any]:
    """Return what a backend says of itself, as plain values."""
    limits = {
        name: sorted(value) if isinstance(value, tuple | list | set | frozenset) else value
        for name, value in vars(backend.limits).items()
    }
    return {
        "title": str(backend.title),
        "components": [str(name) for name in backend.components],
        "choices": {str(name): value for name, value in backend.choices.items()},
        "limits": limits,
    }


def _tell(channel: TextIO, **message: Any) -> None:
    channel.write(json.dumps(message) + "\n")
    channel.flush()


if __name__ == "__main__":
    main()
