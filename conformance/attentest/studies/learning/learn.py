"""Trains backends on one task, under one regime, and compares their curves."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from attentest.analysis.identify.finding import same
from attentest.harness.description import Facts
from attentest.studies.comparison.compare import in_process
from attentest.studies.learning.bleu import installed
from attentest.studies.learning.folder import Place, checkpoints
from attentest.studies.learning.initial import unequal
from attentest.studies.learning.learner import Layout
from attentest.studies.learning.participant import facts, local, train
from attentest.studies.learning.regime import EQUAL, MODELS, PRECISIONS, Regime
from attentest.studies.learning.result import Curve, Learning
from attentest.studies.learning.task import BadTask
from attentest.studies.participants import Participant, gather
from attentest.targets.resolve import Target
from attentest_spec import CHOICES

Listener = Callable[[str, int, int], None]
"""Called with a backend, a seed and the number of steps that are done."""


def learn(
    *targets: Target,
    task: str = "copy",
    seeds: int | Iterable[int] = 1,
    folder: Path | None = None,
    listener: Listener = lambda label, seed, step: None,
    **asked: Any,
) -> Learning:
    """Train the models of `targets` on `task`, in this process and without a time limit.

    `asked` are fields of a :class:`Regime`, and the sizes `d_model`, `heads`,
    `d_ff` and `layers`; what is not given is the task's own. `seeds` are how many, or which. A
    target is a backend, a class or instance, or a string as on the command line. With a `folder`
    an interrupted training goes on there.

    Raises UnknownName and LoadFailure for a target that leads to nothing, BadTask for a regime that
    cannot be, Occupied for a folder of something else.
    """
    participants = in_process(targets, local)
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    return side_by_side(participants, Regime.of(task, **asked), chosen, folder, listener=listener)


def side_by_side(
    participants: Mapping[str, Participant],
    regime: Regime,
    seeds: tuple[int, ...],
    folder: Path | None = None,
    *,
    workers: int = 1,
    listener: Listener = lambda label, seed, step: None,
    stop: Event | None = None,
) -> Learning:
    """Train `participants`, by what they are called, from each of the `seeds`.

    Those that fail are left out and reported. `workers` of them are at work at a time; `stop` is
    set when something interrupts them. Raises what :func:`learn` raises of a regime and a folder.
    """
    if not seeds or min(seeds) < 0:
        raise BadTask("Seeds are whole numbers from 0 on, and at least one is needed.")
    described, failures = gather(
        {name: partial(facts, one) for name, one in participants.items()},
        workers=workers,
        stop=stop,
    )
    component = regime.component
    whole = {name: one for name, one in described.items() if component in one.components}
    fitted, notes = _fitted(regime, whole)
    chosen = {name: participants[name] for name in whole}
    with checkpoints(folder, fitted) as place:
        curves, failed = gather(
            _trainings(chosen, fitted, seeds, place, listener),
            workers=workers,
            stop=stop,
            name=lambda key: key[0],
        )
    lost = {one.backend: one for one in (*failures, *failed)}
    trained = {name: one for name, one in whole.items() if name not in lost}
    return Learning(
        fitted.as_dict(),
        seeds,
        {name: one.count() for name, one in _layouts(fitted, trained).items()},
        _differing(trained),
        tuple(one for (name, _), one in curves.items() if name in trained),
        (
            *(
                _left_out(name, component, one.components)
                for name, one in described.items()
                if name not in whole
            ),
            *notes,
            *_of_start(fitted, trained),
            *_of_text(fitted),
        ),
        tuple(lost.values()),
    )


def _trainings(
    participants: Mapping[str, Participant],
    regime: Regime,
    seeds: tuple[int, ...],
    place: Place,
    listener: Listener,
) -> dict[tuple[str, int], Callable[[], Curve]]:
    """Return what trains each of `participants` from each of the `seeds`."""
    return {
        (name, seed): partial(
            train, one, name, regime, seed, place(name, seed), partial(listener, name, seed)
        )
        for name, one in participants.items()
        for seed in seeds
    }


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
        return unequal(_layouts(regime, facts))
    return ("Each starts at its own weights, from the seed where it lets its seed be set.",)


def _layouts(regime: Regime, facts: Mapping[str, Facts]) -> dict[str, Layout]:
    component = regime.component
    return {name: Layout(component, regime.sizes, one.choices) for name, one in facts.items()}


def _of_text(regime: Regime) -> tuple[str, ...]:
    if regime.of_task.text is None or installed():
        return ()
    return ('BLEU was not computed: it needs pip install "attentest[translation]".',)


def _left_out(name: str, component: str, provided: Collection[str]) -> str:
    kinds = {one: kind for kind, one in MODELS.items()}
    needed = f"{kinds[component]} model" if component in kinds else f"{component} of its own"
    other = [kind for one, kind in kinds.items() if component in kinds and one in provided]
    advice = f" --model {other[0]} trains the one that it provides." if other else ""
    return f"{name} provides no {needed} and was left out.{advice}"
