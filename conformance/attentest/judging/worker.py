"""The methods of a worker process: describes one backend, and judges the clauses of a plan."""

from functools import partial
from typing import Any

from attentest.analysis.statements import statements
from attentest.harness.description import described
from attentest.harness.messages import Listener, Methods
from attentest.harness.process_state import collect_rarely
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.judging.registry import checks
from attentest.results.plan import Plan
from attentest.results.text import plain_value, summary
from attentest.results.verdict import Verdict
from attentest.studies.participants import on_target
from attentest.targets import resolve
from attentest_spec import Backend
from attentest_spec.registry import LoadFailure

checks()  # imported before the backend, which may change what imports find


def methods(backend: Backend) -> Methods:
    """Return what a worker answers about `backend`."""
    return {"describe": partial(_describe, backend), "judge": partial(_judge, backend)}


METHODS = on_target(methods)


def _describe(backend: Backend, *, target: str) -> dict[str, Any]:
    try:
        return described(backend)
    except Exception as failure:  # describing a backend runs code of its author
        raise LoadFailure(f"{target} could not be described: {summary(failure)}") from failure


def _judge(
    backend: Backend, *, target: str, plan: dict[str, Any], fail_fast: bool, tell: Listener
) -> dict[str, str]:
    """Judge every clause of the plan, with an event for each step; return what is measured.

    Where it is to `fail_fast`, the first verdict that fails a run is the last.
    """
    asked = Plan.from_dict(plan)
    bench = Bench(
        backend,
        precision=asked.precision,
        device=asked.device,
        seed=asked.seed,
        effort=asked.effort,
        shrink=asked.shrink,
        diagnose=asked.diagnose,
        loader=resolve.loader(target),
    )

    def report(step: str, verdict: Verdict) -> None:
        tell({"step": step, **plain_value(verdict.as_dict())})

    collect_rarely()
    for slug in asked.clauses:
        tell({"step": "start", "clause": slug})
        verdict = judge(bench, slug, partial(report, "found"))
        report("verdict", verdict)
        if fail_fast and verdict.status.fails_run:
            break
    return _measured(bench)


def _measured(bench: Bench) -> dict[str, str]:
    try:
        found: dict[str, str] = plain_value(statements(bench.subject()))
    except Exception as failure:  # measuring is no judging: it may not cost a verdict
        return {"measuring": f"not finished: {summary(failure)}"}
    return found
