"""Compares backends: their choices, and their numbers at every step of one example."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from threading import Event

from attentest.analysis.identify.finding import same
from attentest.harness.scripted import STEPWISE
from attentest.results.text import line
from attentest.studies.comparison.account import Account
from attentest.studies.comparison.example import (
    EXAMPLES,
    BadExample,
    Example,
    demand_shared_masks,
    suited,
)
from attentest.studies.comparison.explaining import Known, explained, room
from attentest.studies.comparison.notes import cuts, notes
from attentest.studies.comparison.participant import account, local, recording
from attentest.studies.comparison.parts import ChoiceRow
from attentest.studies.comparison.recording import Recording, of_oracle
from attentest.studies.comparison.result import Comparison
from attentest.studies.comparison.steps import parting, rows
from attentest.studies.participants import Failure, Participant, gather
from attentest.targets import resolve
from attentest.targets.resolve import Target
from attentest_spec import CHOICES, COMPONENTS, Backend, Choices
from attentest_spec.components import inside


def compare(*targets: Target, example: Example = EXAMPLES["small"]) -> Comparison:
    """Compare backends with each other, in this process and without a time limit.

    A target is a backend, a function, class or instance, or a string as on the command line. Raises
    UnknownName and LoadFailure for one that leads to nothing that can be compared, and BadExample
    where they have no component in common or no example suits all.
    """
    return side_by_side(in_process(targets, local), example)


def in_process(
    targets: Iterable[Target], local: Callable[[Backend], Participant]
) -> dict[str, Participant]:
    """Return what `targets` lead to as `local` participants, by what they are called.

    Raises UnknownName and LoadFailure as :func:`compare` does.
    """
    return {label: local(resolve.backend_of(one)) for label, one in named(targets).items()}


def named(targets: Iterable[Target]) -> dict[str, Backend | str]:
    """Return the strings among `targets`, and the backends of the others, by what they are called.

    Raises LoadFailure for code whose adapter cannot be inferred.
    """
    ready = [one if isinstance(one, str) else resolve.backend_of(one) for one in targets]
    return dict(zip(called(ready), ready, strict=True))


def called(backends: Iterable[Backend | str]) -> list[str]:
    """Return what each of `backends` is called: its target or its name, no two of them alike."""
    return unlike([one if isinstance(one, str) else line(str(one.name)) for one in backends])


def unlike(labels: list[str]) -> list[str]:
    """Return `labels` with a number behind each that was there before."""
    seen = [labels[:number].count(label) for number, label in enumerate(labels)]
    return [f"{one} ({n + 1})" if n else one for one, n in zip(labels, seen, strict=True)]


def side_by_side(
    participants: Mapping[str, Participant],
    example: Example,
    workers: int = 1,
    stop: Event | None = None,
) -> Comparison:
    """Compare `participants`, by what they are called, with each other.

    Those that fail are left out and reported. `workers` of them are asked at a time; `stop` is set
    when something interrupts them.
    """
    accounts, silent = gather(
        {name: partial(account, one) for name, one in participants.items()},
        workers=workers,
        stop=stop,
    )
    components = common(accounts) if len(accounts) > 1 else ()
    limits = {name: one.limits for name, one in accounts.items()}
    demand_shared_masks(components, limits)
    fitted = suited(example, components).fitted(limits).in_shared_precision(limits)
    recordings, failed = gather(
        {
            name: partial(recording, participants[name], one.choices, components, fitted)
            for name, one in accounts.items()
        },
        workers=workers,
        stop=stop,
    )
    return _comparison(accounts, recordings, components, fitted, [*silent, *failed])


def common(accounts: Mapping[str, Account]) -> tuple[str, ...]:
    """Return the components that all provide, but those inside of another one.

    What decodes is left out: backends are given the same inputs, and read scores in their own way.

    Raises BadExample where there is none.
    """
    shared = [
        name
        for name in COMPONENTS
        if name not in STEPWISE and all(name in one.components for one in accounts.values())
    ]
    decoding = [
        name for name in STEPWISE if all(name in one.components for one in accounts.values())
    ]
    if decoding and not shared:
        raise BadExample(
            f"{decoding[0]} is a loop over tokens: it has no steps that can be followed and "
            f"compared. `attentest check` judges it."
        )
    if not shared:
        provided = "; ".join(
            f"{name} provides {', '.join(one.components) or 'none'}"
            for name, one in accounts.items()
        )
        raise BadExample(
            f"They have no component in common, so nothing can be compared: {provided}."
        )
    # What is around a model, such as a loss, is compared where there is nothing else.
    decoder_only = "language_model" in shared and "model" not in shared
    whole = inside("language_model" if decoder_only else "model")
    shared = [name for name in shared if name in whole] or shared
    outer = {name for name in shared for other in shared if name in inside(other) - {other}}
    return tuple(name for name in shared if name not in outer)


def choice_rows(
    accounts: Mapping[str, Account], explaining: Collection[str] = ()
) -> tuple[ChoiceRow, ...]:
    """Return every choice with what each backend declares and shows of it.

    Of the choices that are `explaining` a difference, what is not known is what it is taken to use.
    """
    found = []
    for name in CHOICES:
        findings = tuple(one.findings[name] for one in accounts.values())
        values = tuple(
            one.choices[name] if name in one.known or name in explaining else None
            for one in accounts.values()
        )
        known = [value for value in values if value is not None]
        differs = not all(same(value, known[0]) for value in known)
        found.append(ChoiceRow(name, findings, values, differs))
    return tuple(found)


def _comparison(
    accounts: Mapping[str, Account],
    recordings: Mapping[str, Recording],
    components: tuple[str, ...],
    example: Example,
    failures: list[Failure],
) -> Comparison:
    @cache
    def oracle(choices: Choices) -> Recording:
        return of_oracle(choices, components, example)

    compared = {name: one for name, one in accounts.items() if name in recordings}
    right = {name: oracle(one.choices) for name, one in compared.items()}
    rooms = {name: room(one.choices, oracle, example) for name, one in compared.items()}
    kept = {name: cuts(recordings[name], right[name], example, rooms[name]) for name in compared}
    own = {name: parting(right[name], kept[name], example, rooms[name]) for name in compared}
    known = [Known(name, one.choices, one.known, kept[name]) for name, one in compared.items()]
    pairs = tuple(explained(*pair, own, oracle, example) for pair in combinations(known, 2))
    return Comparison(
        tuple(compared),
        choice_rows(compared, {flip.choice for one in pairs for flip in one.options}),
        components,
        example,
        rows(list(kept.values()), example),
        tuple(own.values()),
        pairs,
        notes(compared, recordings, kept, components, example),
        tuple(failures),
        tuple(
            replace(picture, backend=name)
            for name, one in compared.items()
            for picture in one.pictures
        ),
    )
