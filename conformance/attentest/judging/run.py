"""Runs a plan over several backends, each in worker processes of its own.

A worker that hangs or takes too much memory is killed, one that dies is replaced; the clause it was
at gets the verdict `timeout` or `crash`, and the next worker continues with the clause after it.
After three of these the remaining clauses get the same verdict untried.
"""

import os
import threading
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from attentest.harness import process
from attentest.harness.errors import ProcessFailure, Stopped, Unavailable
from attentest.harness.messages import Event, disturbed
from attentest.harness.process import Child, Isolation, in_threads
from attentest.harness.starting import POLL, prepare
from attentest.judging.ahead import Ahead, divisible, help_others
from attentest.judging.earlier import Earlier
from attentest.results.blocks import UNSOUGHT
from attentest.results.branches import Branch
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Description, Run
from attentest.results.verdict import Status, Verdict
from attentest.studies.cluster import Lost, cluster
from attentest.studies.participants import Remote
from attentest_spec.components import inside
from attentest_spec.registry import LoadFailure

PATIENCE = 3
"""Timeouts and crashes after which a backend's remaining clauses are not tried."""


Listener = Callable[[BackendRun, Verdict | None], None]
"""Called with each verdict as it comes, and with None once a backend is loaded or has failed to."""


def run(
    targets: Sequence[str],
    plan: Plan,
    *,
    workers: int = 0,
    scheduler: str = "",
    listener: Listener = lambda judged, verdict: None,
    fail_fast: bool = False,
) -> Run:
    """Judge every target under `plan` in at most `workers` processes (as many as there are cores).

    A long plan for fewer targets is divided among several processes; the verdicts are the same.

    With the address of a `scheduler` each is judged by a worker of its Dask cluster, and its
    verdicts come when all of them are there; raises :class:`NoScheduler` where none answers.

    Where they `fail_fast`, a target has no verdict after its first that fails the run.
    Whatever interrupts it, Ctrl-C or an error of the `listener`, ends every worker first.
    """
    if scheduler:
        return Run.of(plan, list(_scheduled(targets, plan, scheduler, listener, fail_fast)))
    lock = threading.Lock()
    stop = threading.Event()

    def one_at_a_time(judged: BackendRun, verdict: Verdict | None) -> None:
        with lock:
            listener(judged, verdict)

    workers = workers or os.cpu_count() or 1
    alone = fail_fast or workers == 1 or not divisible(plan)
    trials: list[_Trial] = []
    for target in targets:  # code that is read, and no backend: several targets are of one file
        before = () if plan.reading is None else tuple(trials)
        result = BackendRun(target)
        trials.append(_Trial(result, plan, one_at_a_time, stop, fail_fast, alone, before))
    actions: dict[int, Callable[[], Any]] = dict(enumerate(one.run for one in trials))
    if not alone:
        # Whoever has no target left helps with those of others: the last one, too, has all cores.
        helping = partial(help_others, [one.ahead for one in trials], stop)
        actions |= {-number: helping for number in range(1, workers)}
    if len(actions) > 1:
        prepare()
    in_threads(actions, workers, stop)
    return Run.of(plan, [one.result for one in trials])


def _scheduled(
    targets: Sequence[str], plan: Plan, scheduler: str, listener: Listener, fail_fast: bool
) -> list[BackendRun]:
    """Return the targets in their order, each as a worker of a cluster judged it."""
    found: dict[str, BackendRun] = {}
    with cluster(0, scheduler) as machines:
        tasks = ((target, (target, plan, fail_fast)) for target in targets)
        for target, judged in machines.each(_judged, tasks):
            if isinstance(judged, Lost):
                judged = BackendRun(target, failure=judged.reason)
            found[target] = shown = replace(judged, verdicts=[])
            listener(shown, None)
            for verdict in judged.verdicts:
                shown.verdicts.append(verdict)
                listener(shown, verdict)
    return [found[target] for target in targets]


def _judged(target: str, plan: Plan, fail_fast: bool) -> BackendRun:
    return run([target], plan, workers=1, fail_fast=fail_fast).backends[0]


@dataclass
class _Trial:
    """One target on its way through the plan, from worker to worker."""

    result: BackendRun
    plan: Plan
    listener: Listener
    stop: threading.Event
    fail_fast: bool
    alone: bool = True  # its clauses are not divided among several processes
    before: Sequence["_Trial"] = ()  # the targets before it that may be parts of it
    ended: threading.Event = field(default_factory=threading.Event)
    loaded: bool = False  # by the worker of the moment
    described: bool = False  # by any worker
    replaced: bool = False  # a worker was lost, and another one goes on
    found: Verdict | None = None  # of the clause that is next, its diagnosis under way

    @cached_property
    def ahead(self) -> Ahead:
        """The division of the plan among processes."""
        return Ahead(self._remote, self.plan, self._read, alone=self.alone)

    def earlier(self) -> Earlier:
        """Wait for the parts of this target, and return what their verdicts show."""
        own = self.result.description.components
        parts = {part for one in own for part in inside(one)}.difference(own)
        found: list[Verdict] = []
        for one in self.before:
            while not (one.ended.is_set() or (one.described and not one.is_among(parts))):
                if self.stop.is_set():
                    raise Stopped("the command was interrupted")
                one.ended.wait(POLL)
            found += one.result.verdicts if one.is_among(parts) else ()
        return Earlier.of(found)

    def is_among(self, parts: Container[str]) -> bool:
        """Return whether one of its components is among the `parts` of another target."""
        return any(one in parts for one in self.result.description.components)

    @property
    def rest(self) -> tuple[str, ...]:
        """The clauses that have no verdict yet, and are to get one."""
        if self.fail_fast and any(one.status.fails_run for one in self.result.verdicts):
            return ()
        return self.plan.clauses[len(self.result.verdicts) :]

    def run(self) -> BackendRun:
        """Judge to the end, in several processes where others help."""
        try:
            with self.ahead:
                return self._judged()
        finally:
            self.ended.set()

    def _judged(self) -> BackendRun:
        """Judge to the end, replacing workers that hang or die.

        Those that are lost in the search for a likely cause are no reason to judge no more: as
        many of them end the search alone.
        """
        status, lost, slow = "", 0, 0
        while lost < PATIENCE:
            failure = self._one_worker()
            if self.result.failure:
                self.listener(self.result, None)
            if failure is None:
                return self.result
            self.replaced = True
            status, found = failure.status, self._undiagnosed(failure)
            slow, lost = slow + (found is not None), lost + (found is None)
            if slow == PATIENCE:
                self.plan = replace(self.plan, diagnose=False)
            self._keep(found or self._unjudged(status, str(failure)))
            if not self.rest:
                return self.result
        untried = f"not tried after {PATIENCE} timeouts or crashes"
        while self.rest:
            self._keep(self._unjudged(status, untried))
        return self.result

    def _unjudged(self, status: str, message: str) -> Verdict:
        return Verdict(self.result.target, self.rest[0], Status(status), message)

    def _undiagnosed(self, reason: Unavailable) -> Verdict | None:
        """Return the verdict that was reached before the worker was lost, if there was one."""
        note = f"{UNSOUGHT}: {reason}"
        return replace(self.found, notes=(*self.found.notes, note)) if self.found else None

    def _keep(self, verdict: Verdict) -> None:
        self.found = None
        self.result.verdicts.append(verdict)
        self.listener(self.result, verdict)

    def _one_worker(self) -> Unavailable | None:
        """Let one worker judge the rest; return the failure that costs a verdict, if any."""
        self.loaded = False
        try:
            with self._remote(self.stop).process() as worker:
                self._describe(worker)
                self.ahead.open()  # not before: what can be loaded once is judged by one process
                self._judge(worker)
        except LoadFailure as failure:
            return self._not_loaded(ProcessFailure("crash", str(failure)))
        except Unavailable as failure:
            if not self.loaded:
                reason = f"The backend {self.result.target} could not be loaded: {failure}."
                return self._not_loaded(ProcessFailure(failure.status, reason))
            if self.rest:
                return failure
            self.result.measured = {"measuring": f"not finished: {failure}"}
        return None

    def _remote(self, stop: threading.Event) -> Remote:
        limits = self.plan.limit, self.plan.memory, process.LOAD_LIMIT
        isolation = Isolation(*limits, stop=stop)
        targets = (self.result.target,)
        return Remote("attentest.judging.worker", targets, isolation, self.plan.reading)

    def _not_loaded(self, failure: Unavailable) -> Unavailable | None:
        """Keep why it was not loaded; that costs a verdict where an earlier worker had done it."""
        if self.described:
            return ProcessFailure(failure.status, f"replacing its process failed: {failure}")
        self.result.failure = str(failure)
        return None

    def _describe(self, worker: Child) -> None:
        worker.seconds = process.LOAD_LIMIT
        facts = worker.call("describe", target=self.result.target)
        try:
            description = Description.from_dict(facts)
        except (TypeError, ValueError, LookupError) as wrong:
            raise disturbed() from wrong
        self.loaded = True
        if not self.described:
            self.described = True
            self.result.description = description
            self.listener(self.result, None)

    def _judge(self, worker: Child) -> None:
        """Take the verdicts that were reached ahead, and let `worker` judge the other clauses."""
        earlier = self.earlier().as_dict()
        while rest := self.rest:
            if verdict := self.ahead.take(rest[0], self.stop):
                self._keep(verdict)
                continue
            asked = self.ahead.own(rest)
            worker.call(
                "judge",
                listen=partial(self._take, worker),
                target=self.result.target,
                plan=replace(self.plan, clauses=asked).as_dict(),
                fail_fast=self.fail_fast,
                earlier=earlier,
            )
            if self.rest not in (rest[len(asked) :], ()):
                raise disturbed()
        measured = worker.call("measure", target=self.result.target, plan=self.plan.as_dict())
        match measured:
            case {"statements": dict(statements), "branches": list(branches)}:
                self.result.measured = statements
                # A worker that was replaced took with it what it had seen.
                self.result.branches = () if self.replaced else self._branches(branches)
            case _:
                raise disturbed()

    def _branches(self, plain: Sequence[Mapping[str, Any]]) -> tuple[Branch, ...]:
        try:
            return tuple(Branch.from_dict(one) for one in plain)
        except TypeError as wrong:
            raise disturbed() from wrong

    def _take(self, worker: Child, event: Event) -> None:
        """Take in one event; raise for one that a worker does not send at this point."""
        match event:
            case {"step": "start", "clause": clause} if clause in self.rest[:1]:
                worker.seconds = self.plan.limit
            case {"step": "found", "clause": clause, **verdict} if clause in self.rest[:1]:
                self.found, worker.seconds = self._read(clause, verdict), process.LOAD_LIMIT
            case {"step": "verdict", "clause": clause, **verdict} if clause in self.rest[:1]:
                worker.seconds = self.plan.limit
                self._keep(self._read(clause, verdict))
            case _:
                raise disturbed()

    def _read(self, clause: str, verdict: Mapping[str, Any]) -> Verdict:
        try:
            return Verdict.from_dict({**verdict, "clause": clause, "backend": self.result.target})
        except (TypeError, ValueError, LookupError, AttributeError) as wrong:
            raise disturbed() from wrong
