"""Tries the options that may answer a question, and names those with which the numbers are right.

Nothing is judged with them: the question stays one, and its advice is known to work.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from torch import Tensor

from attentest.targets.adapt import probing
from attentest.targets.adapt.arguments import MASKS
from attentest.targets.adapt.calling import NO_CONVENTION
from attentest.targets.adapt.candidates import other_components
from attentest.targets.adapt.parameters.trial import Clock
from attentest.targets.adapt.probing import SIZES, Probe, inputs
from attentest.targets.adapt.reading import Attempt, Contrary, Reading, Unclear

MOST = 6
"""How many attempts are made for one question."""

SECONDS = 2.0
"""Time after which no further attempt is begun."""

Read = Callable[[Reading], Any]
"""Returns the backend of code that is read with other options, or raises what reading it does."""


class _Outcome(Enum):
    """The result of an attempt; what is `OPEN` carries something that the numbers do not show."""

    FITS = "fits"
    DIFFERS = "differs"
    OPEN = "open"
    REFUSED = "refused"


def answered(question: Unclear, thing: Any, reading: Reading, read: Read) -> Unclear:
    """Return `question` about `thing` with the options that give the numbers of the reference.

    Where none of those that were tried gives them, it says so.
    """
    if probing.MISSING:
        failure = probing.MISSING[0]
        return Unclear(
            f"Building or calling it raised {type(failure).__name__}: {failure}. Install what is "
            f"missing first, if it is needed. {question}"
        )
    attempts = [*question.attempts, *(other_components(thing, reading) if question.other else ())]
    made: list[Attempt] = []
    for attempt, outcome in _outcomes(attempts, reading, read):
        made.append(attempt)
        if outcome is _Outcome.FITS:
            said = _contrary(attempt, reading, read) or _works(attempt)
            return Unclear(f"{question.text} {said}")
    if not made:
        return question
    tried = ", ".join(one.options for one in made)
    none = f"Options were tried, and none gives the numbers of the reference: {tried}."
    return Unclear(f"{question.text} {none}", question.rest)


def _works(attempt: Attempt) -> str:
    return (
        f"{attempt.options} (in Python: {attempt.python}): with it the numbers are those of the "
        f"reference (tried)."
    )


def _contrary(attempt: Attempt, reading: Reading, read: Read) -> str:
    """Return that the other value of a switch gives other numbers, "" where it does not."""
    values = list(attempt.given.values())
    if len(values) != 1 or not isinstance(values[0], bool):
        return ""
    other = replace(attempt, given=dict.fromkeys(attempt.given, not values[0]))
    if _outcome(other, reading, read) is not _Outcome.DIFFERS:
        return ""
    return (
        f"With {attempt.options} the numbers are those of the reference, and with {other.options} "
        f"they are not (tried): say which one is meant (in Python: {attempt.python})."
    )


def _outcomes(
    attempts: Sequence[Attempt], reading: Reading, read: Read
) -> Iterator[tuple[Attempt, _Outcome]]:
    """Yield the attempts that are made, each with its outcome.

    An argument that carries an input is not left out: that would excuse a mistake in its use.
    """
    clock, carriers = Clock(SECONDS), set[str]()
    for attempt in attempts[:MOST]:
        if carriers & attempt.given.keys():
            continue
        if clock.rings():
            return
        outcome = _outcome(attempt, reading, read)
        if outcome in (_Outcome.OPEN, _Outcome.DIFFERS):
            carriers |= set(attempt.arguments.values())
        yield attempt, outcome


def _outcome(attempt: Attempt, reading: Reading, read: Read) -> _Outcome:
    """Return how the code is read with `attempt`, quickly first: nothing is asked about it then."""
    wanted = attempt.added(reading)
    try:
        found = read(replace(wanted, anyway=True))
        if not getattr(found, "fits", True):
            return _Outcome.DIFFERS if _takes_lengths(attempt, found) else _Outcome.REFUSED
        if not reading.anyway:
            found = read(wanted)
    except Contrary:
        return _Outcome.OPEN
    except Exception:  # code that a user wrote may raise anything
        return _Outcome.REFUSED
    return _Outcome.OPEN if _hides_nothing(attempt, found) else _Outcome.FITS


def _hides_nothing(attempt: Attempt, backend: Any) -> bool:
    """Say whether an argument was taken for a mask that shows no convention."""
    masks = attempt.arguments.keys() & set(MASKS)
    return bool(masks) and any(NO_CONVENTION in one for one in getattr(backend, "assumed", ()))


def _takes_lengths(attempt: Attempt, backend: Any) -> bool:
    """Say whether keys may be more than queries: what is added to them may be taken for keys."""
    if not attempt.arguments.keys() & {"key", "value"}:
        return True
    (component, recipe), *_ = backend.recipes.items()
    probe = Probe(recipe.build(SIZES).double().eval())
    return isinstance(probe.called(recipe.call, inputs(component, 7, probe.dtype)), Tensor)
