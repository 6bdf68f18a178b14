"""A worker process: judges the clauses of one backend and tells its parent, line by line.

Standard input holds one JSON job and stays open for as long as the parent lives, which may ask more
on it. The pipe that was standard output when the process started carries JSON lines to the parent;
before any backend is imported, standard output is joined to standard error and standard input is
emptied, so that nothing a backend prints or reads can reach those pipes.
"""

import sys
import warnings
from typing import Any, TextIO

import numpy as np

from attentest.analysis.statements import statements
from attentest.harness.description import described
from attentest.harness.worker import serve, tell
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.judging.registry import checks
from attentest.results.plan import Plan
from attentest.results.text import line, summary
from attentest.targets import resolve
from attentest_spec import Backend, UnknownName
from attentest_spec.registry import LoadFailure


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
        loader=resolve.loader(target),
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
            return resolve.load(target, plan.reading)
    finally:
        sys.path = [*sys.path, *(folder for folder in path if folder not in sys.path)]


if __name__ == "__main__":
    serve(work)
