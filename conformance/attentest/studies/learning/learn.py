"""Trains backends on one task, under one regime, and puts their curves side by side."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from attentest.analysis.identify.finding import same
from attentest.harness.description import Facts
from attentest.harness.errors import Refused
from attentest.studies.comparison.compare import called
from attentest.studies.comparison.parts import Failure
from attentest.studies.learning.folder import Place, checkpoints
from attentest.studies.learning.initial import unequal
from attentest.studies.learning.learner import Here, Learner
from attentest.studies.learning.regime import EQUAL, PRECISIONS, Regime
from attentest.studies.learning.result import Curve, Learning
from attentest.studies.learning.tasks import BadTask
from attentest.targets import resolve
from attentest_spec import CHOICES, Backend, UnknownName
from attentest_spec.parameters import count
from attentest_spec.registry import LoadFailure

T = TypeVar("T")

Listener = Callable[[str, int, int], None]
"""Called with a backend, a seed and the number of steps that are done."""


def learn(
    *backends: Backend | str,
    task: str = "copy",
    seeds: int | Iterable[int] = 1,
    folder: Path | None = None,
    listener: Listener = lambda label, seed, step: None,
    **asked: Any,
) -> Learning:
    """Train the models of `backends` on `task`, in this process and without a time limit.

    `asked` are fields of a :class:`Regime`, and the sizes `d_model`, `heads`,
    `d_ff` and `layers`; what is not given is the task's own. `seeds` are how many, or which. A
    string is a target as on the command line. With a `folder` an interrupted training goes on
    there.

    Raises UnknownName and LoadFailure for a target that leads to nothing, BadTask for a regime that
    cannot be, Occupied for a folder of something else.
    """
    loaded = [resolve.load(one, {}) if isinstance(one, str) else one for one in backends]
    learners = {
        label: Here(label, one) for label, one in zip(called(backends), loaded, strict=True)
    }
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    return side_by_side(learners, Regime.of(task, **asked), chosen, folder, listener=listener)


def side_by_side(
    learners: Mapping[str, Learner],
    regime: Regime,
    seeds: tuple[int, ...],
    folder: Path | None = None,
    *,
    workers: int = 1,
    listener: Listener = lambda label, seed, step: None,
    stop: Event | None = None,
) -> Learning:
    """Train `learners`, by what they are called, from each of the `seeds`.

    Those that fail are left out and told. `workers` of them are at work at a time; `stop` is set
    when something interrupts them. Raises what :func:`learn` raises of a regime and a folder.
    """
    if not seeds or min(seeds) < 0:
        raise BadTask("Seeds are whole numbers from 0 on, and at least one is needed.")
    failures: list[Failure] = []
    work = partial(_tried, failures=failures, workers=workers, stop=stop or Event())
    facts = work({(name,): one.facts for name, one in learners.items()})
    whole = {name: one for (name,), one in facts.items() if "model" in one.components}
    lacking = [name for (name,) in facts if name not in whole]
    fitted, notes = _fitted(regime, whole)
    with checkpoints(folder, fitted) as place:
        curves = work(_trainings(learners, list(whole), fitted, seeds, place, listener))
    lost = {one.backend for one in failures}
    met = {name: one for name, one in whole.items() if name not in lost}
    return Learning(
        fitted.as_dict(),
        seeds,
        {name: count("model", fitted.sizes, one.choices) for name, one in met.items()},
        _differing(met),
        tuple(one for (name, _), one in curves.items() if name in met),
        (*map(_left_out, lacking), *notes, *_of_start(fitted, met)),
        tuple({one.backend: one for one in failures}.values()),
    )


def _trainings(
    learners: Mapping[str, Learner],
    names: list[str],
    regime: Regime,
    seeds: tuple[int, ...],
    place: Place,
    listener: Listener,
) -> dict[tuple[Any, ...], Callable[[], Curve]]:
    """Return what trains each of `names` from each of the `seeds`."""
    return {
        (name, seed): partial(
            learners[name].train, regime, seed, place(name, seed), partial(listener, name, seed)
        )
        for name in names
        for seed in seeds
    }


def _tried(
    actions: Mapping[tuple[Any, ...], Callable[[], T]],
    failures: list[Failure],
    workers: int,
    stop: Event,
) -> dict[tuple[Any, ...], T]:
    """Return what came of the `actions`, each by a backend first; what failed goes to `failures`.

    Whatever interrupts them sets `stop`.
    """
    found = {}
    with ThreadPoolExecutor(workers) as pool:
        try:
            asked = {
                key: pool.submit(one).result if workers > 1 else one for key, one in actions.items()
            }
            for key, result in asked.items():
                try:
                    found[key] = result()
                except (LoadFailure, UnknownName, Refused) as failure:
                    failures.append(Failure(key[0], str(failure), isinstance(failure, Refused)))
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def _fitted(regime: Regime, facts: Mapping[str, Facts]) -> tuple[Regime, tuple[str, ...]]:
    """Return the regime inside of what all support, and what was changed for that."""
    lacking = [name for name, one in facts.items() if regime.precision not in one.limits.precisions]
    notes = []
    if lacking:
        known = [one.limits.precisions for one in facts.values()]
        shared = [one for one in PRECISIONS if all(one in precisions for precisions in known)]
        if not shared:
            raise BadTask(f"They share no precision to train in: {' and '.join(PRECISIONS)}.")
        notes.append(
            f"The precision is {shared[0]} instead of {regime.precision}, which "
            f"{' and '.join(lacking)} does not compute in."
        )
        regime = replace(regime, precision=shared[0])
    fitted, changed = regime.fitted({name: one.limits for name, one in facts.items()})
    return fitted, (*notes, *changed)


def _differing(facts: Mapping[str, Facts]) -> dict[str, dict[str, Any]]:
    """Return the choices that are declared differently, by backend."""
    table = {name: {label: one.choices[name] for label, one in facts.items()} for name in CHOICES}
    return {
        name: row
        for name, row in table.items()
        if not all(same(one, next(iter(row.values()))) for one in row.values())
    }


def _of_start(regime: Regime, facts: Mapping[str, Facts]) -> tuple[str, ...]:
    if regime.initial == EQUAL:
        return unequal({name: one.choices for name, one in facts.items()}, regime.sizes)
    return ("Each starts at its own weights, which no seed of this command determines.",)


def _left_out(name: str) -> str:
    return f"{name} provides no whole model and was left out."
