"""The methods of a worker process: describes one backend, and judges the clauses of a plan."""

from functools import partial
from typing import Any

from attentest.analysis.statements import statements
from attentest.harness.description import described
from attentest.harness.messages import Listener, Methods
from attentest.harness.process_state import collect_rarely
from attentest.judging.bench import Bench
from attentest.judging.earlier import Earlier
from attentest.judging.executed import Executed
from attentest.judging.judge import judge
from attentest.judging.registry import checks
from attentest.judging.searches import Searches
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
    judging = _Judging(backend)
    return {
        "describe": partial(_describe, backend),
        "judge": judging.judge,
        "measure": judging.measure,
    }


METHODS = on_target(methods)


def _describe(backend: Backend, *, target: str) -> dict[str, Any]:
    try:
        return described(backend)
    except Exception as failure:  # describing a backend runs code of its author
        raise LoadFailure(f"{target} could not be described: {summary(failure)}") from failure


class _Judging:
    """A backend that is judged, on one bench for all calls: it keeps what was found before."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._bench: Bench | None = None

    def judge(
        self,
        *,
        target: str,
        plan: dict[str, Any],
        fail_fast: bool,
        tell: Listener,
        earlier: dict[str, Any] | None = None,
    ) -> None:
        """Judge every clause of the plan, with an event for each step.

        Where it is to `fail_fast`, the first verdict that fails a run is the last. The settings,
        and what is known of parts judged `earlier`, are those of the first call.
        """
        asked = Plan.from_dict(plan)
        bench = self._bench = self._bench or self._made(target, asked, earlier)

        def report(step: str, verdict: Verdict) -> None:
            tell({"step": step, **plain_value(verdict.as_dict())})

        collect_rarely()
        for slug in asked.clauses:
            tell({"step": "start", "clause": slug})
            verdict = judge(bench, slug, partial(report, "found"))
            report("verdict", verdict)
            if fail_fast and verdict.status.fails_run:
                break

    def _made(self, target: str, plan: Plan, earlier: dict[str, Any] | None = None) -> Bench:
        known = Earlier.from_dict(earlier) if earlier else Earlier()
        return Bench(
            self._backend,
            precision=plan.precision,
            device=plan.device,
            seed=plan.seed,
            effort=plan.effort,
            shrink=plan.shrink,
            diagnose=plan.diagnose,
            loader=resolve.loader(target),
            suspects=[*known.suspects],
            searches=Searches(lines={*known.lines}),
            executed=None if plan.reading is None else Executed(target, self._backend),
        )

    def measure(self, *, target: str, plan: dict[str, Any]) -> dict[str, Any]:
        """Return what is measured and not judged, and the branches of code that is no backend."""
        bench = self._bench or self._made(target, Plan.from_dict(plan))
        branches = () if bench.executed is None else bench.executed.branches()
        try:
            found: dict[str, str] = plain_value(statements(bench.subject()))
        except Exception as failure:  # measuring is no judging: it may not cost a verdict
            found = {"measuring": f"not finished: {summary(failure)}"}
        return {"statements": found, "branches": [plain_value(one.as_dict()) for one in branches]}
